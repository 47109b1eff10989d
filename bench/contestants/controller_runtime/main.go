// What controller-runtime does in the benchmarks, written as its users write it.
//
// The one argument is JSON: which work, on what. A line {"at": "start"} says that the program is loaded; then
// come "done" with what it counted, "resynced" where a resync is asked for, "settled" when it gave back what
// memory it can, and, of a cache, "checked" with what it holds. After each it waits for a line, so that whoever
// measures it sees it at rest.
//
// Chosen so that it is not held back: no client-side rate limit (QPS -1), gzip only where it is asked for
// (sync measures both; only lists are ever packed, streams are not), no metrics server, no leader election,
// protobuf for built-in kinds and the streaming list as client-go has them by default, garbage collection at
// its defaults; before memory is looked at, a collection that gives everything back to the system. Reconciles
// skip changes that are of status alone and patch status, which is cheaper than updating it and cannot
// conflict. The cache alone is measured without a manager around it.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"runtime/debug"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// asked is what the argument says.
type asked struct {
	Work       string `json:"work"`
	Kubeconfig string `json:"kubeconfig"`
	Kind       string `json:"kind"` // Pod or Workload
	Form       string `json:"form"` // typed, unstructured or metadata; for the queue: priority; for reconciles: alone, that is, not owning
	Namespace  string `json:"namespace"`
	Count      int    `json:"count"`
	Events     int    `json:"events"`
	Workers    int    `json:"workers"`
	Lists      string `json:"lists"`  // packed: with gzip, as client-go has it; else without
	Resync     int    `json:"resync"` // seconds; 0: as controller-runtime has it
}

var groupVersion = schema.GroupVersion{Group: "bench.setpoint.dev", Version: "v1"}

// Workload is a custom resource with the content of a Pod.
type Workload struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              corev1.PodSpec   `json:"spec"`
	Status            corev1.PodStatus `json:"status"`
}

type WorkloadList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata"`
	Items           []Workload `json:"items"`
}

func (w *Workload) DeepCopyObject() runtime.Object {
	copied := &Workload{TypeMeta: w.TypeMeta}
	w.ObjectMeta.DeepCopyInto(&copied.ObjectMeta)
	w.Spec.DeepCopyInto(&copied.Spec)
	w.Status.DeepCopyInto(&copied.Status)
	return copied
}

func (l *WorkloadList) DeepCopyObject() runtime.Object {
	copied := &WorkloadList{TypeMeta: l.TypeMeta, Items: make([]Workload, len(l.Items))}
	l.ListMeta.DeepCopyInto(&copied.ListMeta)
	for i := range l.Items {
		copied.Items[i] = *l.Items[i].DeepCopyObject().(*Workload)
	}
	return copied
}

// WebApp wants one ConfigMap, and is told so in its status.
type WebApp struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              WebAppSpec   `json:"spec"`
	Status            WebAppStatus `json:"status,omitzero"`
}

type WebAppSpec struct {
	Image    string `json:"image"`
	Replicas int    `json:"replicas"`
}

type WebAppStatus struct {
	ObservedImage string `json:"observedImage,omitempty"`
	Replicas      int    `json:"replicas,omitempty"`
}

type WebAppList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata"`
	Items           []WebApp `json:"items"`
}

func (w *WebApp) DeepCopyObject() runtime.Object {
	copied := *w
	w.ObjectMeta.DeepCopyInto(&copied.ObjectMeta)
	return &copied
}

func (l *WebAppList) DeepCopyObject() runtime.Object {
	copied := &WebAppList{TypeMeta: l.TypeMeta, Items: make([]WebApp, len(l.Items))}
	l.ListMeta.DeepCopyInto(&copied.ListMeta)
	for i := range l.Items {
		copied.Items[i] = *l.Items[i].DeepCopyObject().(*WebApp)
	}
	return copied
}

// ---- what is said to the harness

var input = bufio.NewReader(os.Stdin)

func say(at string, counted map[string]any) {
	line := map[string]any{"at": at}
	for name, value := range counted {
		line[name] = value
	}
	text, err := json.Marshal(line)
	must(err)
	fmt.Println(string(text))
}

// pause says it, and waits for the harness to have looked.
func pause(at string, counted map[string]any) {
	say(at, counted)
	_, _ = input.ReadString('\n')
}

func settle() {
	debug.FreeOSMemory()
	pause("settled", nil)
}

func must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// ---- the cache

func (a *asked) object() client.Object {
	gvk := groupVersion.WithKind("Workload")
	if a.Kind == "Pod" {
		gvk = corev1.SchemeGroupVersion.WithKind("Pod")
	}
	switch {
	case a.Form == "unstructured":
		object := &unstructured.Unstructured{}
		object.SetGroupVersionKind(gvk)
		return object
	case a.Form == "metadata":
		object := &metav1.PartialObjectMetadata{}
		object.SetGroupVersionKind(gvk)
		return object
	case a.Kind == "Pod":
		return &corev1.Pod{}
	default:
		return &Workload{}
	}
}

func (a *asked) list() client.ObjectList {
	gvk := groupVersion.WithKind("WorkloadList")
	if a.Kind == "Pod" {
		gvk = corev1.SchemeGroupVersion.WithKind("PodList")
	}
	switch {
	case a.Form == "unstructured":
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(gvk)
		return list
	case a.Form == "metadata":
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(gvk)
		return list
	case a.Kind == "Pod":
		return &corev1.PodList{}
	default:
		return &WorkloadList{}
	}
}

// fill syncs a cache, and tells each change to the handler, if there is one.
func (a *asked) fill(ctx context.Context, config *rest.Config, handler toolscache.ResourceEventHandler) cache.Cache {
	kept, err := cache.New(config, cache.Options{Scheme: newScheme()})
	must(err)
	informer, err := kept.GetInformer(ctx, a.object())
	must(err)
	if handler != nil {
		_, err = informer.AddEventHandler(handler)
		must(err)
	}
	go func() { must(kept.Start(ctx)) }()
	if !kept.WaitForCacheSync(ctx) {
		must(fmt.Errorf("the cache did not sync"))
	}
	return kept
}

// check reads everything, as copies that may be changed, which is the default: how many there are, the sum of
// their versions, the sum of their first ports.
func (a *asked) check(ctx context.Context, kept cache.Cache) map[string]any {
	list := a.list()
	must(kept.List(ctx, list))
	count, versions, ports := 0, int64(0), int64(0)
	see := func(object client.Object, port int64) {
		version, err := strconv.ParseInt(object.GetResourceVersion(), 10, 64)
		must(err)
		count, versions, ports = count+1, versions+version, ports+port
	}
	switch list := list.(type) {
	case *corev1.PodList:
		for i := range list.Items {
			see(&list.Items[i], int64(list.Items[i].Spec.Containers[0].Ports[0].ContainerPort))
		}
	case *WorkloadList:
		for i := range list.Items {
			see(&list.Items[i], int64(list.Items[i].Spec.Containers[0].Ports[0].ContainerPort))
		}
	case *unstructured.UnstructuredList:
		for i := range list.Items {
			containers, _, err := unstructured.NestedSlice(list.Items[i].Object, "spec", "containers")
			must(err)
			port := containers[0].(map[string]any)["ports"].([]any)[0].(map[string]any)["containerPort"]
			see(&list.Items[i], port.(int64))
		}
	case *metav1.PartialObjectMetadataList:
		for i := range list.Items {
			see(&list.Items[i], 0)
		}
	}
	return map[string]any{"count": count, "versions": versions, "ports": ports}
}

func (a *asked) sync(ctx context.Context, config *rest.Config) {
	pause("start", nil)
	kept := a.fill(ctx, config, nil)
	pause("done", nil)
	settle()
	pause("checked", a.check(ctx, kept))
}

func (a *asked) watch(ctx context.Context, config *rest.Config) {
	pause("start", nil)
	var seen atomic.Int64
	all := make(chan struct{})
	kept := a.fill(ctx, config, toolscache.ResourceEventHandlerFuncs{
		UpdateFunc: func(any, any) {
			if seen.Add(1) == int64(a.Events) {
				close(all)
			}
		},
	})
	say("synced", nil)
	<-all
	pause("done", map[string]any{"events": seen.Load()})
	settle()
	pause("checked", a.check(ctx, kept))
}

// ---- the controller

type reconciler struct {
	client.Client
	mutex sync.Mutex
	count int
	done  map[string]bool
	all   chan struct{}
}

func (r *reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	webapp := &WebApp{}
	if err := r.Get(ctx, request.NamespacedName, webapp); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	child := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: webapp.Name, Namespace: webapp.Namespace}}
	if _, err := controllerutil.CreateOrUpdate(ctx, r.Client, child, func() error {
		child.Data = map[string]string{"image": webapp.Spec.Image, "replicas": strconv.Itoa(webapp.Spec.Replicas)}
		return controllerutil.SetControllerReference(webapp, child, r.Scheme())
	}); err != nil {
		return ctrl.Result{}, err
	}
	wanted := WebAppStatus{ObservedImage: webapp.Spec.Image, Replicas: webapp.Spec.Replicas}
	if webapp.Status != wanted {
		before := client.MergeFrom(webapp.DeepCopyObject().(*WebApp))
		webapp.Status = wanted
		if err := r.Status().Patch(ctx, webapp, before); err != nil {
			return ctrl.Result{}, err
		}
	}
	r.finished(request.Name)
	return ctrl.Result{}, nil
}

func (r *reconciler) finished(name string) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if !r.done[name] {
		if r.done[name] = true; len(r.done) == r.count {
			close(r.all)
		}
	}
}

// again forgets what was looked at, and tells when all of it was looked at once more.
func (r *reconciler) again() <-chan struct{} {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.done, r.all = map[string]bool{}, make(chan struct{})
	return r.all
}

func (a *asked) manager(config *rest.Config) ctrl.Manager {
	kept := cache.Options{DefaultNamespaces: map[string]cache.Config{a.Namespace: {}}}
	if a.Resync > 0 {
		period := time.Duration(a.Resync) * time.Second
		kept.SyncPeriod = &period
	}
	manager, err := ctrl.NewManager(config, ctrl.Options{
		Scheme:  newScheme(),
		Cache:   kept,
		Metrics: server.Options{BindAddress: "0"},
	})
	must(err)
	return manager
}

func (a *asked) reconcile(ctx context.Context, config *rest.Config) {
	pause("start", nil)
	manager := a.manager(config)
	kept := &reconciler{Client: manager.GetClient(), count: a.Count}
	all := kept.again()
	built := ctrl.NewControllerManagedBy(manager).
		For(&WebApp{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		WithOptions(controller.Options{MaxConcurrentReconciles: a.Workers})
	if a.Form != "alone" {
		built = built.Owns(&corev1.ConfigMap{})
	}
	must(built.Complete(kept))
	go func() { must(manager.Start(ctx)) }()
	<-all
	pause("done", map[string]any{"count": a.Count})
	if a.Resync > 0 {
		<-kept.again()
		pause("resynced", map[string]any{"count": a.Count})
	}
	settle()
}

// steady records how late each change is looked at: the image says when it was asked for.
func (a *asked) steady(ctx context.Context, config *rest.Config) {
	pause("start", nil)
	manager := a.manager(config)
	var mutex sync.Mutex
	late, images := map[string]float64{}, map[string]string{}
	synced, all := make(chan struct{}), make(chan struct{})
	look := reconcile.Func(func(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
		now := time.Now().UnixNano()
		webapp := &WebApp{}
		if err := manager.GetClient().Get(ctx, request.NamespacedName, webapp); err != nil {
			return ctrl.Result{}, err
		}
		mutex.Lock()
		defer mutex.Unlock()
		image := webapp.Spec.Image
		before, isKnown := images[request.Name]
		images[request.Name] = image
		if !isKnown && len(images) == a.Count {
			close(synced)
		}
		if isKnown && image != before {
			then, err := strconv.ParseInt(image, 10, 64)
			must(err)
			if late[image] = float64(now-then) / 1e6; len(late) == a.Events {
				close(all)
			}
		}
		return ctrl.Result{}, nil
	})
	must(ctrl.NewControllerManagedBy(manager).For(&WebApp{}).
		WithOptions(controller.Options{MaxConcurrentReconciles: a.Workers}).Named("steady").Complete(look))
	go func() { must(manager.Start(ctx)) }()
	<-synced
	say("synced", nil)
	<-all
	pause("done", map[string]any{"late": late})
	settle()
}

// ---- the queue

// queue adds, hands out and gives back every key; each of these is an operation.
func (a *asked) queue() {
	keys := make([]reconcile.Request, a.Count)
	for i := range keys {
		keys[i].Namespace, keys[i].Name = "shop", fmt.Sprintf("webapp-%d", i)
	}
	var queue workqueue.TypedRateLimitingInterface[reconcile.Request]
	if a.Form == "priority" {
		queue = priorityqueue.New[reconcile.Request]("bench")
	} else {
		queue = workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
	}
	pause("start", nil)
	for _, key := range keys {
		queue.Add(key)
	}
	for range keys {
		key, _ := queue.Get()
		queue.Done(key)
	}
	pause("done", map[string]any{"operations": 3 * a.Count})
	settle()
}

func newScheme() *runtime.Scheme {
	scheme := runtime.NewScheme()
	must(clientgoscheme.AddToScheme(scheme))
	scheme.AddKnownTypes(groupVersion, &Workload{}, &WorkloadList{}, &WebApp{}, &WebAppList{})
	metav1.AddToGroupVersion(scheme, groupVersion)
	return scheme
}

func main() {
	a := &asked{}
	must(json.Unmarshal([]byte(os.Args[1]), a))
	ctrl.SetLogger(zap.New(zap.WriteTo(os.Stderr)))
	ctx := context.Background()
	if a.Work == "queue" {
		a.queue()
		return
	}
	config, err := clientcmd.BuildConfigFromFlags("", a.Kubeconfig)
	must(err)
	config.QPS = -1
	config.DisableCompression = a.Lists != "packed"
	switch a.Work {
	case "sync":
		a.sync(ctx, config)
	case "watch":
		a.watch(ctx, config)
	case "reconcile":
		a.reconcile(ctx, config)
	case "steady":
		a.steady(ctx, config)
	default:
		must(fmt.Errorf("there is no work %q", a.Work))
	}
}
