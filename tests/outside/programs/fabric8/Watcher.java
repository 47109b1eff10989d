import io.fabric8.kubernetes.api.model.ConfigMap;
import io.fabric8.kubernetes.api.model.ConfigMapBuilder;
import io.fabric8.kubernetes.api.model.NamespaceBuilder;
import io.fabric8.kubernetes.client.Config;
import io.fabric8.kubernetes.client.KubernetesClient;
import io.fabric8.kubernetes.client.KubernetesClientBuilder;
import io.fabric8.kubernetes.client.Watch;
import io.fabric8.kubernetes.client.Watcher.Action;
import io.fabric8.kubernetes.client.WatcherException;
import io.fabric8.kubernetes.client.informers.ResourceEventHandler;
import java.io.File;
import java.util.List;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;

/** Watches ConfigMaps as fabric8's client does, over a WebSocket: by a watch, and by an informer. */
public class Watcher {
  private static final BlockingQueue<String> seen = new LinkedBlockingQueue<>();

  public static void main(String[] args) throws Exception {
    Config config = Config.fromKubeconfig(new File(args[0]));
    config.setClientKeyAlgo("EC"); // of a client certificate, if there is one: it does not look
    String namespace = args[1];
    try (KubernetesClient client = new KubernetesClientBuilder().withConfig(config).build()) {
      client
          .namespaces()
          .resource(new NamespaceBuilder().withNewMetadata().withName(namespace).endMetadata().build())
          .create();
      try (Watch watch = client.configMaps().inNamespace(namespace).watch(new Events())) {
        expect(watch.getClass().getSimpleName(), "WatchConnectionManager"); // the one of WebSockets
        change(client, namespace, "watch ADDED a 1", "watch MODIFIED a 2", "watch DELETED a 2");
      }
      expect(next(), "watch closed");
      try (var informer =
          client.configMaps().inNamespace(namespace).inform(new Changes())) {
        change(client, namespace, "informer added a 1", "informer updated a 2", "informer deleted a 2");
      }
    }
  }

  private static void change(KubernetesClient client, String namespace, String... wanted) throws Exception {
    ConfigMap map =
        new ConfigMapBuilder().withNewMetadata().withName("a").endMetadata().addToData("count", "1").build();
    var resource = client.configMaps().inNamespace(namespace).resource(map);
    resource.create();
    expect(next(), wanted[0]);
    client.configMaps().inNamespace(namespace).withName("a").edit(one -> {
      one.setData(java.util.Map.of("count", "2"));
      return one;
    });
    expect(next(), wanted[1]);
    resource.delete();
    expect(next(), wanted[2]);
  }

  private static String next() throws InterruptedException {
    return seen.poll(30, TimeUnit.SECONDS);
  }

  private static void expect(String got, String wanted) {
    if (!wanted.equals(got)) {
      throw new IllegalStateException("wanted " + wanted + ", got " + got + ", then " + List.copyOf(seen));
    }
    System.out.println(got);
  }

  private static String told(ConfigMap map) {
    return map.getMetadata().getName() + " " + map.getData().get("count");
  }

  private static boolean isOurs(ConfigMap map) {
    return map.getMetadata().getName().equals("a"); // a controller puts another there
  }

  private static class Events implements io.fabric8.kubernetes.client.Watcher<ConfigMap> {
    @Override
    public void eventReceived(Action action, ConfigMap map) {
      if (isOurs(map)) seen.add("watch " + action + " " + told(map));
    }

    @Override
    public void onClose() {
      seen.add("watch closed");
    }

    @Override
    public void onClose(WatcherException why) {
      seen.add("watch failed: " + why);
    }
  }

  private static class Changes implements ResourceEventHandler<ConfigMap> {
    @Override
    public void onAdd(ConfigMap map) {
      if (isOurs(map)) seen.add("informer added " + told(map));
    }

    @Override
    public void onUpdate(ConfigMap before, ConfigMap map) {
      if (isOurs(map)) seen.add("informer updated " + told(map));
    }

    @Override
    public void onDelete(ConfigMap map, boolean isStale) {
      if (isOurs(map)) seen.add("informer deleted " + told(map));
    }
  }
}
