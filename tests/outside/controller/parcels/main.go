// A small operator with webhooks, as kubebuilder lays one out, that has no more rights than its role gives.
//
// A Parcel (parcels.outside.setpoint.dev) is stored as v1 and also served as v2, which calls spec.text
// spec.message: this program converts between them, sets what is not set, and refuses what it cannot carry.
// For every Parcel it keeps a ConfigMap, and says in its status which text that holds.
//
// It prints a line when its caches are filled, and runs until it is told to stop.
package main

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/clientcmd"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/conversion"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

const group = "outside.setpoint.dev"

type status struct {
	Text string `json:"text,omitempty"`
}

// Parcel is v1, the version that others are converted by way of.
type Parcel struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		Text string `json:"text,omitempty"`
		Size string `json:"size,omitempty"`
	} `json:"spec"`
	Status status `json:"status"`
}

// Message is a Parcel of v2.
type Message struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		Message string `json:"message,omitempty"`
		Size    string `json:"size,omitempty"`
	} `json:"spec"`
	Status status `json:"status"`
}

type ParcelList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata"`
	Items           []Parcel `json:"items"`
}

func (p *Parcel) DeepCopyObject() runtime.Object {
	copied := *p
	p.ObjectMeta.DeepCopyInto(&copied.ObjectMeta)
	return &copied
}

func (m *Message) DeepCopyObject() runtime.Object {
	copied := *m
	m.ObjectMeta.DeepCopyInto(&copied.ObjectMeta)
	return &copied
}

func (l *ParcelList) DeepCopyObject() runtime.Object {
	copied := *l
	copied.Items = make([]Parcel, len(l.Items))
	for i := range l.Items {
		copied.Items[i] = *l.Items[i].DeepCopyObject().(*Parcel)
	}
	return &copied
}

func (*Parcel) Hub() {}

func (m *Message) ConvertTo(hub conversion.Hub) error {
	parcel := hub.(*Parcel)
	parcel.ObjectMeta, parcel.Status = m.ObjectMeta, m.Status
	parcel.Spec.Text, parcel.Spec.Size = m.Spec.Message, m.Spec.Size
	return nil
}

func (m *Message) ConvertFrom(hub conversion.Hub) error {
	parcel := hub.(*Parcel)
	m.ObjectMeta, m.Status = parcel.ObjectMeta, parcel.Status
	m.Spec.Message, m.Spec.Size = parcel.Spec.Text, parcel.Spec.Size
	return nil
}

type rules struct{}

func (rules) Default(_ context.Context, parcel *Parcel) error {
	if parcel.Spec.Size == "" {
		parcel.Spec.Size = "small"
	}
	return nil
}

func (rules) ValidateCreate(_ context.Context, parcel *Parcel) (admission.Warnings, error) {
	if strings.Contains(parcel.Spec.Text, "fragile") {
		return nil, fmt.Errorf("nobody carries what is fragile")
	}
	if parcel.Spec.Size == "large" {
		return admission.Warnings{"a large parcel takes longer"}, nil
	}
	return nil, nil
}

func (r rules) ValidateUpdate(ctx context.Context, old, parcel *Parcel) (admission.Warnings, error) {
	if old.Spec.Size != parcel.Spec.Size {
		return nil, fmt.Errorf("a parcel stays %s", old.Spec.Size)
	}
	return r.ValidateCreate(ctx, parcel)
}

func (rules) ValidateDelete(_ context.Context, parcel *Parcel) (admission.Warnings, error) {
	if _, keeps := parcel.Labels["keep"]; keeps {
		return nil, fmt.Errorf("it is to be kept")
	}
	return nil, nil
}

type reconciler struct{ client.Client }

func (r *reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	parcel := &Parcel{}
	if err := r.Get(ctx, request.NamespacedName, parcel); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	content := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: parcel.Name, Namespace: parcel.Namespace}}
	if _, err := controllerutil.CreateOrUpdate(ctx, r.Client, content, func() error {
		content.Data = map[string]string{"text": parcel.Spec.Text}
		return controllerutil.SetControllerReference(parcel, content, r.Scheme())
	}); err != nil {
		return ctrl.Result{}, err
	}
	parcel.Status.Text = parcel.Spec.Text
	return ctrl.Result{}, r.Status().Update(ctx, parcel)
}

func run(kubeconfig, namespace, port, certificates string) error {
	ctrl.SetLogger(zap.New())
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return err
	}
	number, err := strconv.Atoi(port)
	if err != nil {
		return err
	}
	scheme := runtime.NewScheme()
	if err := clientgoscheme.AddToScheme(scheme); err != nil {
		return err
	}
	v1, v2 := schema.GroupVersion{Group: group, Version: "v1"}, schema.GroupVersion{Group: group, Version: "v2"}
	scheme.AddKnownTypes(v1, &Parcel{}, &ParcelList{})
	scheme.AddKnownTypeWithName(v2.WithKind("Parcel"), &Message{})
	metav1.AddToGroupVersion(scheme, v1)
	metav1.AddToGroupVersion(scheme, v2)
	manager, err := ctrl.NewManager(config, ctrl.Options{
		Scheme:        scheme,
		Cache:         cache.Options{DefaultNamespaces: map[string]cache.Config{namespace: {}}},
		Metrics:       server.Options{BindAddress: "0"},
		WebhookServer: webhook.NewServer(webhook.Options{Host: "127.0.0.1", Port: number, CertDir: certificates}),
	})
	if err != nil {
		return err
	}
	hooks := ctrl.NewWebhookManagedBy(manager, &Parcel{}).WithDefaulter(rules{}).WithValidator(rules{})
	if err := hooks.Complete(); err != nil {
		return err
	}
	keeps := &reconciler{manager.GetClient()}
	if err := ctrl.NewControllerManagedBy(manager).For(&Parcel{}).Owns(&corev1.ConfigMap{}).Complete(keeps); err != nil {
		return err
	}
	context := ctrl.SetupSignalHandler()
	go func() {
		if manager.GetCache().WaitForCacheSync(context) {
			fmt.Println("ready")
		}
	}()
	return manager.Start(context)
}

func main() {
	if err := run(os.Args[1], os.Args[2], os.Args[3], os.Args[4]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
