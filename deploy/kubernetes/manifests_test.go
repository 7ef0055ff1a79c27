// Package kubernetes checks the manifests against the types of Kubernetes' API. It is a module of its own, so that
// lockbench does not need these.
package kubernetes

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	apps "k8s.io/api/apps/v1"
	batch "k8s.io/api/batch/v1"
	core "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"
)

// objects decodes a manifest's documents; a field that the API does not have is an error.
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

// variable returns the value of a container's variable.
func variable(t *testing.T, c core.Container, name string) string {
	t.Helper()
	i := slices.IndexFunc(c.Env, func(v core.EnvVar) bool { return v.Name == name })
	if i < 0 {
		t.Fatalf("%s is not set", name)
	}
	return c.Env[i].Value
}

// confined returns what a pod may do that it need not.
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

// The manifests are what the API knows, and agree with each other: as many pods as generators, at that Redis.
func TestManifests(t *testing.T) {
	job := manifest(t, "generators.yaml")[0].(*batch.Job)
	servers := manifest(t, "redis.yaml")
	service, redis := servers[0].(*core.Service), servers[1].(*apps.Deployment)
	var kustomization struct {
		APIVersion, Kind string
		Resources        []string
		Images           []struct{ Name, NewTag string }
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
		strconv.Itoa(int(*spec.Completions)) != variable(t, generator, "LOCKBENCH_GENERATORS") {
		t.Errorf("%d completions, %d at a time, of %s generators", *spec.Completions, *spec.Parallelism,
			variable(t, generator, "LOCKBENCH_GENERATORS"))
	}
	if rule := spec.PodFailurePolicy.Rules[0]; rule.Action != batch.PodFailurePolicyActionIgnore ||
		*rule.OnExitCodes.ContainerName != generator.Name {
		t.Errorf("%+v", rule)
	}
	at := fmt.Sprintf("redis://%s:%d", service.Name, service.Spec.Ports[0].Port)
	if got := variable(t, generator, "LOCKBENCH_REDIS"); got != at {
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
}

// A misspelt field is found, and a pod that may do too much.
func TestWrongManifests(t *testing.T) {
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
