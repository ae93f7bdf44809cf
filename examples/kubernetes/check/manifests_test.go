// Package check holds the manifests of the folder above to Kubernetes' own
// types, to each other, and to weir's flags.
package check

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

// manifests are all objects of the folder, by kind.
type manifests struct {
	jobs        []batchv1.Job
	deployments []appsv1.Deployment
	services    []corev1.Service
	configs     []corev1.ConfigMap
	claims      []corev1.PersistentVolumeClaim
}

// read decodes every document strictly: a field that the type does not have, or
// that stands there twice, is an error.
func read(t *testing.T) (m manifests) {
	t.Helper()
	files, err := filepath.Glob("../*.yaml")
	if err != nil || len(files) < 2 {
		t.Fatalf("the manifests are %v, %v", files, err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for i, doc := range bytes.Split(text, []byte("\n---\n")) {
			var kind metav1.TypeMeta
			if err := yaml.Unmarshal(doc, &kind); err != nil {
				t.Fatalf("%s, document %d: %v", file, i+1, err)
			}
			switch kind.APIVersion + " " + kind.Kind {
			case "batch/v1 Job":
				m.jobs, err = strictly(m.jobs, doc)
			case "apps/v1 Deployment":
				m.deployments, err = strictly(m.deployments, doc)
			case "v1 Service":
				m.services, err = strictly(m.services, doc)
			case "v1 ConfigMap":
				m.configs, err = strictly(m.configs, doc)
			case "v1 PersistentVolumeClaim":
				m.claims, err = strictly(m.claims, doc)
			default:
				err = fmt.Errorf("a %s %s is not expected here", kind.APIVersion, kind.Kind)
			}
			if err != nil {
				t.Fatalf("%s, document %d: %v", file, i+1, err)
			}
		}
	}
	return m
}

func strictly[T any](list []T, doc []byte) ([]T, error) {
	var one T
	err := yaml.UnmarshalStrict(doc, &one)
	return append(list, one), err
}

func theJob(t *testing.T) (batchv1.Job, corev1.PodSpec) {
	t.Helper()
	m := read(t)
	if len(m.jobs) != 1 {
		t.Fatalf("%d jobs, want 1", len(m.jobs))
	}
	return m.jobs[0], m.jobs[0].Spec.Template.Spec
}

func TestTheJobIsIndexedAndItsPodsAreTheShardsOfOnePlan(t *testing.T) {
	job, pod := theJob(t)
	s := job.Spec
	if s.CompletionMode == nil || *s.CompletionMode != batchv1.IndexedCompletion {
		t.Error("the job is not indexed")
	}
	if s.Completions == nil || s.Parallelism == nil || *s.Completions != *s.Parallelism {
		t.Fatal("not all shards run at once")
	}
	if s.BackoffLimit == nil || *s.BackoffLimit != 0 || pod.RestartPolicy != corev1.RestartPolicyNever {
		t.Error("a shard is tried again, when its instant has passed")
	}
	want := fmt.Sprintf("$(JOB_COMPLETION_INDEX)/%d", *s.Completions)
	for _, c := range slices.Concat(pod.InitContainers, pod.Containers) {
		if got := variable(c, "WEIR_SHARD"); got != want {
			t.Errorf("container %s: WEIR_SHARD is %q, want %q", c.Name, got, want)
		}
		if variable(c, "WEIR_SEED") == "" {
			t.Errorf("container %s: no WEIR_SEED: each shard would draw a plan of its own", c.Name)
		}
	}
}

func variable(c corev1.Container, name string) string {
	for _, e := range c.Env {
		if e.Name == name {
			return e.Value
		}
	}
	return ""
}

func TestTheProxyIsASidecarThatTheLoadGoesThrough(t *testing.T) {
	_, pod := theJob(t)
	if len(pod.InitContainers) != 1 || len(pod.Containers) != 1 {
		t.Fatalf("%d init containers and %d containers", len(pod.InitContainers), len(pod.Containers))
	}
	proxy, load := pod.InitContainers[0], pod.Containers[0]
	if proxy.RestartPolicy == nil || *proxy.RestartPolicy != corev1.ContainerRestartPolicyAlways || proxy.StartupProbe == nil {
		t.Error("the proxy is no sidecar that is up before the load begins")
	}
	at := after(proxy.Args, "--listen")
	if at == "" || !strings.Contains(load.Args[0], "--target http://"+at+" ") {
		t.Errorf("the load does not go to the proxy at %q:\n%s", at, load.Args[0])
	}
	if db := after(proxy.Args, "--db"); !strings.Contains(load.Args[0], "--db "+db+" ") {
		t.Errorf("the load does not record where the proxy does, %s", db)
	}
	volumes := map[string]bool{}
	for _, v := range pod.Volumes {
		volumes[v.Name] = true
	}
	for _, c := range []corev1.Container{proxy, load} {
		for _, m := range c.VolumeMounts {
			if !volumes[m.Name] {
				t.Errorf("container %s mounts %s, which the pod has not", c.Name, m.Name)
			}
		}
		if sc := c.SecurityContext; sc == nil || sc.ReadOnlyRootFilesystem == nil || !*sc.ReadOnlyRootFilesystem {
			t.Errorf("container %s may write its image", c.Name)
		}
		for _, e := range c.Env {
			if secret := strings.Contains(e.Name, "KEY") || strings.Contains(e.Name, "SECRET"); secret && (e.ValueFrom == nil || e.ValueFrom.SecretKeyRef == nil) {
				t.Errorf("container %s: %s does not come from a secret", c.Name, e.Name)
			}
		}
	}
}

// after is the argument behind a flag.
func after(args []string, flag string) string {
	if i := slices.Index(args, flag); i >= 0 && i+1 < len(args) {
		return args[i+1]
	}
	return ""
}

func TestSpansReachTheCollector(t *testing.T) {
	m := read(t)
	_, pod := theJob(t)
	if len(m.services) != 1 || len(m.deployments) != 1 || len(m.claims) != 1 {
		t.Fatalf("%d services, %d deployments, %d claims", len(m.services), len(m.deployments), len(m.claims))
	}
	service, template := m.services[0], m.deployments[0].Spec.Template
	for key, value := range service.Spec.Selector {
		if template.Labels[key] != value || m.deployments[0].Spec.Selector.MatchLabels[key] != value {
			t.Errorf("the service selects %s=%s, which the collector's pods are not", key, value)
		}
	}
	port := service.Spec.Ports[0]
	named := slices.IndexFunc(template.Spec.Containers[0].Ports, func(p corev1.ContainerPort) bool { return p.Name == port.TargetPort.StrVal })
	if named < 0 {
		t.Fatalf("the collector has no port %s", port.TargetPort.StrVal)
	}
	if listens := fmt.Sprintf("endpoint: 0.0.0.0:%d", template.Spec.Containers[0].Ports[named].ContainerPort); !strings.Contains(m.configs[0].Data["config.yaml"], listens) {
		t.Errorf("the collector's settings do not say %q", listens)
	}
	want := fmt.Sprintf("http://%s:%d", service.Name, port.Port)
	for _, c := range slices.Concat(pod.InitContainers, pod.Containers) {
		if got := variable(c, "OTEL_EXPORTER_OTLP_ENDPOINT"); got != want {
			t.Errorf("container %s sends its spans to %q, want %q", c.Name, got, want)
		}
	}
	if claim := pod.Volumes[slices.IndexFunc(pod.Volumes, func(v corev1.Volume) bool { return v.Name == "results" })]; claim.PersistentVolumeClaim.ClaimName != m.claims[0].Name {
		t.Errorf("results go to the claim %s, want %s", claim.PersistentVolumeClaim.ClaimName, m.claims[0].Name)
	}
}

// Every flag and variable that the pods give must be one that weir has.
func TestWeirKnowsTheFlagsAndVariables(t *testing.T) {
	_, pod := theJob(t)
	weir := filepath.Join(t.TempDir(), "weir")
	build := exec.Command("go", "build", "-o", weir, "./cmd/weir")
	build.Dir = "../../.."
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build weir: %v\n%s", err, out)
	}
	help := ""
	for _, args := range [][]string{pod.InitContainers[0].Args, pod.InitContainers[0].StartupProbe.Exec.Command[1:]} {
		out, err := exec.Command(weir, append(slices.Clone(args), "--help")...).CombinedOutput()
		if err != nil {
			t.Errorf("weir %s: %v\n%s", strings.Join(args, " "), err, out)
		}
		help += string(out)
	}
	// The load's script runs as it is, with a weir that only reads its flags and
	// a cp that copies nothing.
	bin := t.TempDir()
	for name, does := range map[string]string{"weir": "exec " + weir + ` "$@" --help`, "cp": `test "$2" = /results/3.db`} {
		if err := os.WriteFile(filepath.Join(bin, name), []byte("#!/bin/sh\n"+does+"\n"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	load := pod.Containers[0]
	c := exec.Command(load.Command[0], append(slices.Clone(load.Command[1:]), load.Args...)...)
	c.Env = []string{"PATH=" + bin + ":" + os.Getenv("PATH"), "JOB_COMPLETION_INDEX=3"}
	out, err := c.CombinedOutput()
	if err != nil || !bytes.Contains(out, []byte("weir load MODEL")) || !bytes.Contains(out, []byte("weir merge DB")) {
		t.Errorf("the load's script: %v\n%s", err, out)
	}
	help += string(out)
	for _, c := range slices.Concat(pod.InitContainers, pod.Containers) {
		for _, e := range c.Env {
			own := strings.HasPrefix(e.Name, "WEIR_") && e.Name != "WEIR_FINGERPRINT_SECRET" && e.Name != "WEIR_API_KEY"
			if own && !strings.Contains(help, "[$"+e.Name+"]") {
				t.Errorf("no flag of weir is read from $%s", e.Name)
			}
		}
	}
}
