// A small operator built with controller-runtime, as a user would write one.
//
// For every Box (boxes.outside.setpoint.dev) it keeps a ConfigMap that the Box owns and a Service that it
// applies, writes a condition and an Event, and holds the Box by a finalizer until it has left a note of its
// end. One replica of several works, by a Lease.
//
// It prints a line when it leads, and runs until it is told to stop.
package main

import (
	"context"
	"fmt"
	"os"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

const finalizer = "outside.setpoint.dev/note"

var groupVersion = schema.GroupVersion{Group: "outside.setpoint.dev", Version: "v1"}

// Box is the kind of manifests/box-crd.yaml, as far as it is used here.
type Box struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		Text string `json:"text"`
		Size int    `json:"size,omitempty"`
	} `json:"spec"`
	Status struct {
		Text       string             `json:"text,omitempty"`
		Conditions []metav1.Condition `json:"conditions,omitempty"`
	} `json:"status"`
}

type BoxList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata"`
	Items           []Box `json:"items"`
}

func (b *Box) DeepCopyObject() runtime.Object {
	copied := *b
	b.ObjectMeta.DeepCopyInto(&copied.ObjectMeta)
	copied.Status.Conditions = append([]metav1.Condition(nil), b.Status.Conditions...)
	return &copied
}

func (l *BoxList) DeepCopyObject() runtime.Object {
	copied := *l
	copied.Items = make([]Box, len(l.Items))
	for i := range l.Items {
		copied.Items[i] = *l.Items[i].DeepCopyObject().(*Box)
	}
	return &copied
}

type reconciler struct {
	client.Client
	events events.EventRecorder
}

func (r *reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	box := &Box{}
	if err := r.Get(ctx, request.NamespacedName, box); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !box.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, r.end(ctx, box)
	}
	if controllerutil.AddFinalizer(box, finalizer) {
		if err := r.Update(ctx, box); err != nil {
			return ctrl.Result{}, err
		}
	}
	content := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: box.Name + "-content", Namespace: box.Namespace}}
	if _, err := controllerutil.CreateOrUpdate(ctx, r.Client, content, func() error {
		content.Data = map[string]string{"text": box.Spec.Text}
		return controllerutil.SetControllerReference(box, content, r.Scheme())
	}); err != nil {
		return ctrl.Result{}, err
	}
	service := corev1ac.Service(box.Name, box.Namespace).WithLabels(map[string]string{"text": box.Spec.Text}).
		WithSpec(corev1ac.ServiceSpec().WithPorts(corev1ac.ServicePort().WithPort(80)))
	if err := r.Apply(ctx, service, client.FieldOwner("boxes"), client.ForceOwnership); err != nil {
		return ctrl.Result{}, err
	}
	before := client.MergeFrom(box.DeepCopyObject().(*Box))
	box.Status.Text = box.Spec.Text
	if meta.SetStatusCondition(&box.Status.Conditions, metav1.Condition{
		Type: "Ready", Status: metav1.ConditionTrue, Reason: "Kept", ObservedGeneration: box.Generation,
	}) {
		r.events.Eventf(box, content, corev1.EventTypeNormal, "Kept", "Keep", "%s is kept", box.Spec.Text)
	}
	return ctrl.Result{}, r.Status().Patch(ctx, box, before)
}

// end leaves a note, and then lets the box go.
func (r *reconciler) end(ctx context.Context, box *Box) error {
	note := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: box.Name + "-note", Namespace: box.Namespace},
		Data:       map[string]string{"text": box.Spec.Text},
	}
	if err := client.IgnoreAlreadyExists(r.Create(ctx, note)); err != nil {
		return err
	}
	before := client.MergeFrom(box.DeepCopyObject().(*Box))
	controllerutil.RemoveFinalizer(box, finalizer)
	return client.IgnoreNotFound(r.Patch(ctx, box, before))
}

func run(kubeconfig, namespace string) error {
	ctrl.SetLogger(zap.New())
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return err
	}
	scheme := runtime.NewScheme()
	if err := clientgoscheme.AddToScheme(scheme); err != nil {
		return err
	}
	scheme.AddKnownTypes(groupVersion, &Box{}, &BoxList{})
	metav1.AddToGroupVersion(scheme, groupVersion)
	short := time.Second
	lease, renew := 4*time.Second, 3*time.Second
	manager, err := ctrl.NewManager(config, ctrl.Options{
		Scheme:                        scheme,
		Cache:                         cache.Options{DefaultNamespaces: map[string]cache.Config{namespace: {}}},
		Metrics:                       server.Options{BindAddress: "0"},
		LeaderElection:                true,
		LeaderElectionID:              "boxes",
		LeaderElectionNamespace:       namespace,
		LeaderElectionReleaseOnCancel: true,
		LeaseDuration:                 &lease,
		RenewDeadline:                 &renew,
		RetryPeriod:                   &short,
	})
	if err != nil {
		return err
	}
	kept := &reconciler{manager.GetClient(), manager.GetEventRecorder("boxes")}
	if err := ctrl.NewControllerManagedBy(manager).For(&Box{}).Owns(&corev1.ConfigMap{}).Complete(kept); err != nil {
		return err
	}
	go func() {
		<-manager.Elected()
		fmt.Println("leading")
	}()
	return manager.Start(ctrl.SetupSignalHandler())
}

func main() {
	if err := run(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
