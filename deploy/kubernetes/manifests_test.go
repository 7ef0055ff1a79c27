// Package kubernetes checks the manifests against the types of Kubernetes' API. It is a separate module, so that
// lockbench itself does not depend on these types.
package kubernetes

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	apps "k8s.io/api/apps/v1"
	batch "k8s.io/api/batch/v1"
	core "k8s.io/api/core/v1"
	networking "k8s.io/api/networking/v1"
	"sigs.k8s.io/yaml"
)

// objects decodes the YAML documents of a manifest. It returns an error for a field that the Kubernetes API does not
// have.
func objects(text []byte) (all []any, err error) {
	for _, document := range bytes.Split(text, []byte("\n---\n")) {
		var head struct{ APIVersion, Kind string }
		if err := yaml.Unmarshal(document, &head); err != nil {
			return nil, err
		}
		var object any
		switch head.APIVersion + " " + head.Kind {
		case "batch/v1 Job":
			object = &batch.Job{}
		case "apps/v1 Deployment":
			object = &apps.Deployment{}
		case "v1 Service":
			object = &core.Service{}
		case "networking.k8s.io/v1 NetworkPolicy":
			object = &networking.NetworkPolicy{}
		default:
			return nil, fmt.Errorf("%s %s is not known here", head.APIVersion, head.Kind)
		}
		if err := yaml.UnmarshalStrict(document, object); err != nil {
			return nil, err
		}
		all = append(all, object)
	}
	return all, nil
}

func read(t *testing.T, name string) []byte {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func manifest(t *testing.T, name string) []any {
	t.Helper()
	all, err := objects(read(t, name))
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return all
}

// one returns the first object of type T in a manifest. The test fails if there is none.
func one[T any](t *testing.T, name string) *T {
	t.Helper()
	for _, object := range manifest(t, name) {
		if found, is := object.(*T); is {
			return found
		}
	}
	t.Fatalf("%s has no %T", name, new(T))
	return nil
}

// variable returns the container's environment variable with the given name. The test fails if it is not set.
func variable(t *testing.T, c core.Container, name string) core.EnvVar {
	t.Helper()
	i := slices.IndexFunc(c.Env, func(v core.EnvVar) bool { return v.Name == name })
	if i < 0 {
		t.Fatalf("%s is not set", name)
	}
	return c.Env[i]
}

// confined returns an error for each privilege that a pod does not need, such as running as root, and for each
// container without resource requests.
func confined(pod core.PodSpec) error {
	var problems []error
	if s := pod.SecurityContext; s == nil || s.RunAsNonRoot == nil || !*s.RunAsNonRoot || s.RunAsUser == nil {
		problems = append(problems, errors.New("it may run as root"))
	}
	for _, c := range pod.Containers {
		s := c.SecurityContext
		if s == nil || s.ReadOnlyRootFilesystem == nil || !*s.ReadOnlyRootFilesystem ||
			s.AllowPrivilegeEscalation == nil || *s.AllowPrivilegeEscalation || s.Capabilities == nil {
			problems = append(problems, fmt.Errorf("%s may change its files or gain rights", c.Name))
		}
		if c.Resources.Requests.Cpu().IsZero() || c.Resources.Requests.Memory().IsZero() {
			problems = append(problems, fmt.Errorf("%s requests no resources", c.Name))
		}
	}
	return errors.Join(problems...)
}

// The manifests must be valid for the Kubernetes API and agree with each other: the job must start as many pods as
// there are generators, and the generators must use the address of the Redis service.
func TestManifests(t *testing.T) {
	job := one[batch.Job](t, "generators.yaml")
	service, redis := one[core.Service](t, "redis.yaml"), one[apps.Deployment](t, "redis.yaml")
	var kustomization struct {
		APIVersion, Kind string
		Resources        []string
		SecretGenerator  []struct {
			Name  string
			Files []string
		}
		ConfigMapGenerator []struct {
			Name  string
			Files []string
		}
		Images []struct{ Name, NewTag string }
	}
	if err := yaml.UnmarshalStrict(read(t, "kustomization.yaml"), &kustomization); err != nil {
		t.Fatal(err)
	}
	for _, name := range kustomization.Resources {
		manifest(t, name)
	}
	spec, pod := job.Spec, job.Spec.Template.Spec
	generator := pod.Containers[0]
	if *spec.CompletionMode != batch.IndexedCompletion || *spec.Completions != *spec.Parallelism ||
		strconv.Itoa(int(*spec.Completions)) != variable(t, generator, "LOCKBENCH_GENERATORS").Value {
		t.Errorf("%d completions, %d at a time, of %s generators", *spec.Completions, *spec.Parallelism,
			variable(t, generator, "LOCKBENCH_GENERATORS").Value)
	}
	if rule := spec.PodFailurePolicy.Rules[0]; rule.Action != batch.PodFailurePolicyActionIgnore ||
		*rule.OnExitCodes.ContainerName != generator.Name {
		t.Errorf("%+v", rule)
	}
	at := fmt.Sprintf("redis://%s:%d", service.Name, service.Spec.Ports[0].Port)
	if got := variable(t, generator, "LOCKBENCH_REDIS").Value; got != at {
		t.Errorf("the generators measure %s, not %s", got, at)
	}
	for name, selectors := range map[string][]map[string]string{
		"generators": {pod.TopologySpreadConstraints[0].LabelSelector.MatchLabels, spec.Template.Labels},
		"redis":      {service.Spec.Selector, redis.Spec.Selector.MatchLabels, redis.Spec.Template.Labels},
	} {
		for _, selector := range selectors {
			if fmt.Sprint(selector) != fmt.Sprint(selectors[0]) {
				t.Errorf("%s: the labels are %v", name, selectors)
			}
		}
	}
	if kustomization.Images[0].Name != generator.Image {
		t.Errorf("kustomize replaces %s, not %s", kustomization.Images[0].Name, generator.Image)
	}
	for name, pod := range map[string]core.PodSpec{"generators": pod, "redis": redis.Spec.Template.Spec} {
		if err := confined(pod); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	settings, volume, mount := kustomization.ConfigMapGenerator[0], pod.Volumes[0], generator.VolumeMounts[0]
	if volume.ConfigMap == nil || volume.ConfigMap.Name != settings.Name || mount.Name != volume.Name ||
		!slices.Equal(generator.Args, []string{"--file", mount.MountPath + "/" + settings.Files[0]}) {
		t.Errorf("the generators read %q of %+v at %+v", generator.Args, volume, mount)
	}
	var run map[string]any
	if err := yaml.UnmarshalStrict(read(t, settings.Files[0]), &run); err != nil || run["strategies"] == nil {
		t.Errorf("%s has %v: %v", settings.Files[0], run, err)
	}
	port := generator.Ports[0]
	if at := variable(t, generator, "LOCKBENCH_METRICS").Value; at != fmt.Sprint(":", port.ContainerPort) {
		t.Errorf("metrics are at %s, and the port is %+v", at, port)
	}
	monitor := string(read(t, "podmonitor.yaml"))
	if !strings.Contains(monitor, "port: "+port.Name+",") || !strings.Contains(monitor, "app: lockbench}") {
		t.Errorf("the monitor does not name %s of the generators", port.Name)
	}
	secret := kustomization.SecretGenerator[0]
	for name, c := range map[string]core.Container{
		"LOCKBENCH_REDIS_PASSWORD": generator, "REDIS_PASSWORD": redis.Spec.Template.Spec.Containers[0],
	} {
		if from := variable(t, c, name).ValueFrom; from == nil || from.SecretKeyRef == nil ||
			from.SecretKeyRef.Name != secret.Name || from.SecretKeyRef.Key != secret.Files[0] {
			t.Errorf("%s is from %+v, not from %+v", name, from, secret)
		}
	}
	ignored := string(read(t, "../../.gitignore"))
	if !strings.Contains(ignored, "/deploy/kubernetes/"+secret.Files[0]+"\n") {
		t.Errorf("git would keep %s", secret.Files[0])
	}
}

// The network policies must let only the generators reach Redis, and only on its port. They must let only Prometheus
// reach the generators, and only on the port of their metrics.
func TestNetworkPolicies(t *testing.T) {
	job, service := one[batch.Job](t, "generators.yaml"), one[core.Service](t, "redis.yaml")
	redis, generators := one[networking.NetworkPolicy](t, "redis.yaml").Spec,
		one[networking.NetworkPolicy](t, "generators.yaml").Spec
	both := []networking.PolicyType{networking.PolicyTypeIngress, networking.PolicyTypeEgress}
	for name, p := range map[string]struct {
		spec networking.NetworkPolicySpec
		pods map[string]string
	}{"redis": {redis, service.Spec.Selector}, "generators": {generators, job.Spec.Template.Labels}} {
		if !maps.Equal(p.spec.PodSelector.MatchLabels, p.pods) || !slices.Equal(p.spec.PolicyTypes, both) {
			t.Errorf("%s: %v of %v", name, p.spec.PolicyTypes, p.spec.PodSelector)
		}
	}
	in := redis.Ingress[0]
	if len(redis.Ingress) != 1 || len(in.From) != 1 || len(in.Ports) != 1 || in.From[0].NamespaceSelector != nil ||
		!maps.Equal(in.From[0].PodSelector.MatchLabels, job.Spec.Template.Labels) ||
		in.Ports[0].Port.IntVal != service.Spec.Ports[0].Port || len(redis.Egress) != 0 {
		t.Errorf("Redis is reached by %+v, and reaches %+v", redis.Ingress, redis.Egress)
	}
	var out []string
	for _, rule := range generators.Egress {
		for _, port := range rule.Ports {
			out = append(out, fmt.Sprint(*port.Protocol, " ", port.Port))
		}
	}
	if want := []string{fmt.Sprint("TCP ", service.Spec.Ports[0].Port), "UDP 53", "TCP 53"}; !slices.Equal(out, want) ||
		len(generators.Ingress) != 1 || len(generators.Ingress[0].From) != 1 ||
		generators.Ingress[0].Ports[0].Port.IntVal != job.Spec.Template.Spec.Containers[0].Ports[0].ContainerPort {
		t.Errorf("the generators reach %v, want %v, and are reached by %+v", out, want, generators.Ingress)
	}
}

// The Redis of the manifest must require the password. The password must not be in the arguments of the process, which
// other users of the node can read.
func TestRedisRequiresPassword(t *testing.T) {
	const secret = "s3cr3t'$(x)"
	c := one[apps.Deployment](t, "redis.yaml").Spec.Template.Spec.Containers[0]
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	at := free.Addr().String()
	_ = free.Close()
	_, port, _ := net.SplitHostPort(at)
	words := slices.Clone(c.Command)
	words[2] = strings.Replace(words[2], "redis-server -", "redis-server - --bind 127.0.0.1 --port "+port, 1)
	server := exec.Command(words[0], words[1:]...)
	server.Dir, server.Env = t.TempDir(), append(os.Environ(), "REDIS_PASSWORD="+secret)
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Process.Kill(); _ = server.Wait() })
	said := func(request string) string {
		for range 100 {
			if conn, err := net.Dial("tcp", at); err == nil {
				defer conn.Close()
				_, _ = io.WriteString(conn, request+"QUIT\r\n")
				answer, _ := io.ReadAll(conn)
				return string(answer)
			}
			time.Sleep(50 * time.Millisecond)
		}
		return "nothing"
	}
	if answer := said("PING\r\n"); !strings.HasPrefix(answer, "-NOAUTH") {
		t.Errorf("without a password it says %q", answer)
	}
	if answer := said("AUTH \"" + secret + "\"\r\nPING\r\n"); !strings.HasPrefix(answer, "+OK\r\n+PONG") {
		t.Errorf("with the password it says %q", answer)
	}
	shown, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", server.Process.Pid))
	if err != nil || !strings.Contains(string(shown), "redis-server") || strings.Contains(string(shown), "s3cr3t") {
		t.Errorf("its arguments are %q, %v", shown, err)
	}
}

// The checks themselves must detect a misspelt field and a pod with unneeded privileges.
func TestInvalidManifests(t *testing.T) {
	text := string(read(t, "generators.yaml"))
	for _, right := range []string{"completionMode:", "topologyKey:", "readOnlyRootFilesystem:", "value: \"3\""} {
		wrong := strings.Replace(text, right, "x"+right, 1)
		if _, err := objects([]byte(wrong)); err == nil {
			t.Errorf("x%s is taken for a field", right)
		}
	}
	if err := confined(core.PodSpec{Containers: []core.Container{{Name: "a"}}}); err == nil ||
		strings.Count(err.Error(), "\n") != 2 {
		t.Errorf("a pod without limits: %v", err)
	}
}

// run.sh must delete the job of an earlier run, print the report, and fail if the job fails or does not end in time.
func TestRunScript(t *testing.T) {
	for conditions, want := range map[string]string{
		"SuccessCriteriaMet Complete ": "report\n", "FailureTarget Failed ": "report\nrun.sh: the job failed",
		"": "report\nrun.sh: the job has not ended within 1 s",
	} {
		folder := t.TempDir()
		for _, name := range []string{"run.sh", "kustomization.yaml"} {
			if err := os.WriteFile(folder+"/"+name, read(t, name), 0o755); err != nil {
				t.Fatal(err)
			}
		}
		kubectl := "#!/bin/sh\necho \"$@\" >>" + folder + "/calls\ncase $1 in get) printf %s '" + conditions +
			"' ;; logs) echo report ;; esac\n"
		if err := os.WriteFile(folder+"/kubectl", []byte(kubectl), 0o755); err != nil {
			t.Fatal(err)
		}
		run := exec.Command(folder + "/run.sh")
		run.Env = append(os.Environ(), "PATH="+folder+":"+os.Getenv("PATH"), "TIMEOUT=1")
		said, err := run.CombinedOutput()
		said = bytes.ReplaceAll(said, []byte("run.sh: the job has begun\n"), nil)
		if !strings.HasPrefix(string(said), want) || (err == nil) != strings.Contains(conditions, "Complete") {
			t.Errorf("%q: %v, it says %q", conditions, err, said)
		}
		calls := strings.Split(string(read(t, folder+"/calls")), "\n")
		if calls[0] != "delete job lockbench --ignore-not-found" || calls[1] != "apply -k ." {
			t.Errorf("it called %q", calls)
		}
		if password := read(t, folder+"/password"); len(password) != 64 {
			t.Errorf("the password is %d bytes", len(password))
		}
	}
}
