//! What kube-rs does in the benchmarks, written as its users write it.
//!
//! The one argument is JSON: which work, on what. A line {"at": "start"} says that the program is loaded; then
//! come "done" with what it counted, "settled" when it gave back what memory it can, and, of a cache, "checked"
//! with what it holds. After each it waits for a line, so that whoever measures it sees it at rest.
//!
//! Chosen so that it is not held back: a release build with full link-time optimisation, in one unit; no client-side rate limit
//! (it has none); the reflector alone, without a controller around it, for the cache; both of its ways to list
//! (pages, its default, and the streaming list) are contestants. The controller looks only at a changed
//! generation, applies its child as the project's own examples do, and patches status only where it differs.
//! Before memory is looked at, the allocator gives back what is free.
use std::{
    borrow::Cow,
    collections::{HashMap, HashSet},
    fmt::Debug,
    hash::Hash,
    io::{BufRead, Write},
    sync::{Arc, Mutex},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use futures::StreamExt;
use k8s_openapi::api::core::v1::{ConfigMap, Pod, PodSpec, PodStatus};
use kube::{
    Api, Client, CustomResource, Resource, ResourceExt,
    api::{ApiResource, DynamicObject, ObjectMeta, PartialObjectMeta, Patch, PatchParams},
    config::{KubeConfigOptions, Kubeconfig},
    core::{GroupVersionKind, NamespaceResourceScope},
    runtime::{
        WatchStreamExt, controller,
        controller::{Action, Controller},
        predicates, reflector,
        reflector::{Store, store::Writer},
        watcher,
    },
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::{Value, json};
use tokio::sync::Notify;

#[derive(Deserialize, Clone)]
struct Asked {
    work: String,
    #[serde(default)]
    kubeconfig: String,
    #[serde(default)]
    kind: String, // Pod or Workload
    #[serde(default)]
    form: String, // typed, unstructured or metadata; for reconciles: alone, that is, not owning
    #[serde(default)]
    list: String, // pages or stream
    #[serde(default)]
    namespace: String,
    #[serde(default)]
    count: usize,
    #[serde(default)]
    events: usize,
    #[serde(default)]
    workers: u16,
}

/// A custom resource with the content of a Pod. By hand, because a derived spec could have it only through
/// `flatten`, which costs serde a second pass.
#[derive(Deserialize, Serialize, Clone, Debug)]
struct Workload {
    metadata: ObjectMeta,
    spec: PodSpec,
    status: Option<PodStatus>,
}

impl Resource for Workload {
    type DynamicType = ();
    type Scope = NamespaceResourceScope;

    fn kind(_: &()) -> Cow<'_, str> {
        "Workload".into()
    }

    fn group(_: &()) -> Cow<'_, str> {
        "bench.setpoint.dev".into()
    }

    fn version(_: &()) -> Cow<'_, str> {
        "v1".into()
    }

    fn plural(_: &()) -> Cow<'_, str> {
        "workloads".into()
    }

    fn meta(&self) -> &ObjectMeta {
        &self.metadata
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
    }
}

/// Wants one ConfigMap, and is told so in its status.
#[derive(CustomResource, Deserialize, Serialize, Clone, Debug, JsonSchema)]
#[kube(group = "bench.setpoint.dev", version = "v1", kind = "WebApp", namespaced)]
#[kube(status = "WebAppStatus")]
#[serde(rename_all = "camelCase")]
struct WebAppSpec {
    image: String,
    replicas: i64,
}

#[derive(Deserialize, Serialize, Clone, Debug, Default, PartialEq, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct WebAppStatus {
    #[serde(default)]
    observed_image: String,
    #[serde(default)]
    replicas: i64,
}

// ---- what is said to the harness

fn say(at: &str, mut counted: Value) {
    counted["at"] = json!(at);
    println!("{counted}");
    std::io::stdout().flush().unwrap();
}

/// Says it, and waits for the harness to have looked.
fn pause(at: &str, counted: Value) {
    say(at, counted);
    std::io::stdin().lock().read_line(&mut String::new()).unwrap();
}

fn settle() {
    unsafe { libc::malloc_trim(0) };
    pause("settled", json!({}));
}

// ---- the cache

trait Ported {
    fn port(&self) -> i64;
}

impl Ported for Pod {
    fn port(&self) -> i64 {
        first_port(self.spec.as_ref().unwrap())
    }
}

impl Ported for Workload {
    fn port(&self) -> i64 {
        first_port(&self.spec)
    }
}

impl Ported for DynamicObject {
    fn port(&self) -> i64 {
        self.data["spec"]["containers"][0]["ports"][0]["containerPort"].as_i64().unwrap()
    }
}

impl<K> Ported for PartialObjectMeta<K> {
    fn port(&self) -> i64 {
        0
    }
}

fn first_port(spec: &PodSpec) -> i64 {
    spec.containers[0].ports.as_ref().unwrap()[0].container_port.into()
}

async fn cache<K>(asked: Asked, api: Api<K>, kind: K::DynamicType)
where
    K: Resource + Ported + Clone + DeserializeOwned + Debug + Send + Sync + 'static,
    K::DynamicType: Eq + Hash + Clone + Send + Sync,
{
    let writer: Writer<K> = Writer::new(kind);
    let store = writer.as_reader();
    let mut config = watcher::Config::default();
    if asked.list == "stream" {
        config = config.streaming_lists();
    }
    let all = Arc::new(Notify::new());
    let (told, wanted) = (all.clone(), asked.events);
    let mut seen = 0;
    tokio::spawn(
        reflector(writer, watcher(api, config)).default_backoff().for_each(move |event| {
            match event {
                Ok(watcher::Event::Apply(_)) => {
                    seen += 1;
                    if seen == wanted {
                        told.notify_one();
                    }
                }
                Ok(_) => {}
                Err(error) => eprintln!("{error}"),
            }
            std::future::ready(())
        }),
    );
    store.wait_until_ready().await.unwrap();
    if asked.work == "watch" {
        say("synced", json!({}));
        all.notified().await;
    }
    pause("done", json!({"events": asked.events}));
    settle();
    pause("checked", check(&store));
}

fn check<K>(store: &Store<K>) -> Value
where
    K: Resource + Ported + Clone + 'static,
    K::DynamicType: Eq + Hash + Clone,
{
    let (mut count, mut versions, mut ports) = (0, 0, 0);
    for object in store.state() {
        count += 1;
        versions += object.meta().resource_version.as_ref().unwrap().parse::<i64>().unwrap();
        ports += object.port();
    }
    json!({"count": count, "versions": versions, "ports": ports})
}

async fn cached(asked: Asked, client: Client) {
    pause("start", json!({}));
    let gvk = if asked.kind == "Pod" {
        GroupVersionKind::gvk("", "v1", "Pod")
    } else {
        GroupVersionKind::gvk("bench.setpoint.dev", "v1", "Workload")
    };
    match (asked.form.as_str(), asked.kind.as_str()) {
        ("typed", "Pod") => cache::<Pod>(asked, Api::all(client), ()).await,
        ("typed", _) => cache::<Workload>(asked, Api::all(client), ()).await,
        ("metadata", "Pod") => cache::<PartialObjectMeta<Pod>>(asked, Api::all(client), ()).await,
        ("metadata", _) => cache::<PartialObjectMeta<Workload>>(asked, Api::all(client), ()).await,
        _ => {
            let kind = ApiResource::from_gvk(&gvk);
            cache::<DynamicObject>(asked, Api::all_with(client, &kind), kind).await
        }
    }
}

// ---- the controller

struct Context {
    client: Client,
    missing: Mutex<(usize, HashSet<String>)>,
    all: Notify,
}

async fn reconcile(webapp: Arc<WebApp>, context: Arc<Context>) -> Result<Action, kube::Error> {
    let (name, namespace) = (webapp.name_any(), webapp.namespace().unwrap());
    let child = ConfigMap {
        metadata: ObjectMeta {
            name: Some(name.clone()),
            owner_references: webapp.controller_owner_ref(&()).map(|owner| vec![owner]),
            ..Default::default()
        },
        data: Some(
            [
                ("image".to_string(), webapp.spec.image.clone()),
                ("replicas".to_string(), webapp.spec.replicas.to_string()),
            ]
            .into(),
        ),
        ..Default::default()
    };
    Api::<ConfigMap>::namespaced(context.client.clone(), &namespace)
        .patch(&name, &PatchParams::apply("bench").force(), &Patch::Apply(&child))
        .await?;
    let wanted = WebAppStatus { observed_image: webapp.spec.image.clone(), replicas: webapp.spec.replicas };
    if webapp.status.as_ref() != Some(&wanted) {
        Api::<WebApp>::namespaced(context.client.clone(), &namespace)
            .patch_status(&name, &PatchParams::default(), &Patch::Merge(json!({"status": wanted})))
            .await?;
    }
    let mut missing = context.missing.lock().unwrap();
    if missing.1.insert(name) && missing.1.len() == missing.0 {
        context.all.notify_one();
    }
    Ok(Action::await_change())
}

async fn control(asked: Asked, client: Client) {
    pause("start", json!({}));
    let webapps: Api<WebApp> = Api::namespaced(client.clone(), &asked.namespace);
    let children: Api<ConfigMap> = Api::namespaced(client.clone(), &asked.namespace);
    let context =
        Arc::new(Context { client, missing: Mutex::new((asked.count, HashSet::new())), all: Notify::new() });
    let (reader, writer) = reflector::store();
    let stream = watcher(webapps, watcher::Config::default())
        .default_backoff()
        .reflect(writer)
        .applied_objects()
        .predicate_filter(predicates::generation, Default::default());
    let mut controller = Controller::for_stream(stream, reader);
    if asked.form != "alone" {
        controller = controller.owns(children, watcher::Config::default());
    }
    tokio::spawn(
        controller
            .with_config(controller::Config::default().concurrency(asked.workers))
            .run(reconcile, |_, _, _| Action::requeue(Duration::from_millis(50)), context.clone())
            .for_each(|_| std::future::ready(())),
    );
    context.all.notified().await;
    pause("done", json!({"count": asked.count}));
    settle();
}

/// Records how late each change is looked at: the image says when it was asked for.
async fn steady(asked: Asked, client: Client) {
    #[derive(Default)]
    struct Seen {
        images: HashMap<String, String>,
        late: HashMap<String, f64>,
    }
    pause("start", json!({}));
    let webapps: Api<WebApp> = Api::namespaced(client, &asked.namespace);
    let (synced, all) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let kept = Arc::new(Mutex::new(Seen::default()));
    let (told_synced, told_all, seen) = (synced.clone(), all.clone(), kept.clone());
    let (count, events) = (asked.count, asked.events);
    let look = move |webapp: Arc<WebApp>, _: Arc<()>| {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos();
        let image = webapp.spec.image.clone();
        let mut seen = seen.lock().unwrap();
        match seen.images.insert(webapp.name_any(), image.clone()) {
            None if seen.images.len() == count => told_synced.notify_one(),
            Some(before) if before != image => {
                let then: u128 = image.parse().unwrap();
                seen.late.insert(image, (now as f64 - then as f64) / 1e6);
                if seen.late.len() == events {
                    told_all.notify_one();
                }
            }
            _ => {} // the first look, or nothing changed
        }
        std::future::ready(Ok::<_, kube::Error>(Action::await_change()))
    };
    tokio::spawn(
        Controller::new(webapps, watcher::Config::default())
            .with_config(controller::Config::default().concurrency(asked.workers))
            .run(look, |_, _, _| Action::requeue(Duration::from_millis(50)), Arc::new(()))
            .for_each(|_| std::future::ready(())),
    );
    synced.notified().await;
    say("synced", json!({}));
    all.notified().await;
    let late = kept.lock().unwrap().late.clone();
    pause("done", json!({"late": late}));
    settle();
}

#[tokio::main]
async fn main() {
    let asked: Asked = serde_json::from_str(&std::env::args().nth(1).unwrap()).unwrap();
    let kubeconfig = Kubeconfig::read_from(&asked.kubeconfig).unwrap();
    let config =
        kube::Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await.unwrap();
    let client = Client::try_from(config).unwrap();
    match asked.work.as_str() {
        "sync" | "watch" => cached(asked, client).await,
        "reconcile" => control(asked, client).await,
        "steady" => steady(asked, client).await,
        work => panic!("there is no work {work:?}"),
    }
    std::process::exit(0) // what runs beside is not waited for
}
