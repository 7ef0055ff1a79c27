package docker_test

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// compose returns the Compose command of this machine, which is a plugin or a separate program.
func compose(t *testing.T) []string {
	t.Helper()
	if exec.Command("docker", "compose", "version").Run() == nil {
		return []string{"docker", "compose"}
	}
	if path, err := exec.LookPath("docker-compose"); err == nil {
		return []string{path}
	}
	t.Skip("neither docker compose nor docker-compose is installed")
	return nil
}

// Every compose file must be valid, use the image in LOCKBENCH_REDIS_IMAGE if that is set, and make its servers
// reachable only on the loopback interface.
func TestComposeFiles(t *testing.T) {
	command := compose(t)
	files, err := filepath.Glob("compose*.yaml")
	if err != nil || len(files) != 4 {
		t.Fatalf("files %v, %v", files, err)
	}
	t.Setenv("LOCKBENCH_REDIS_IMAGE", "another-redis:1")
	for _, file := range files {
		output, err := exec.Command(command[0], append(command[1:], "-f", file, "config")...).CombinedOutput()
		if err != nil {
			t.Errorf("%s: %v: %s", file, err, output)
			continue
		}
		config := string(output)
		if !strings.Contains(config, "another-redis:1") || strings.Contains(config, "lockbench-redis:compose") {
			t.Errorf("%s keeps to its own image: %s", file, config)
		}
		servers := strings.Count(config, "redis-server")
		// A server on the host's network binds to 127.0.0.1, and a server on another network publishes its port on 127.0.0.1.
		// So the configuration must contain the address at least once for each server.
		if bound := strings.Count(config, "127.0.0.1"); servers == 0 || bound < servers {
			t.Errorf("%s: %d servers, %d of them on the loopback interface: %s", file, servers, bound, config)
		}
	}
}
