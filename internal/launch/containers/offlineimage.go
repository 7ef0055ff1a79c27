package containers

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/testcontainers/testcontainers-go"

	"github.com/lockbench/lockbench/internal/launch"
)

// offlineImage is an image made from scratch of the machine's own programs and the
// libraries they need, so that a container can be had without a registry.
type offlineImage struct {
	name      string // its tag follows from the contents: a new server makes a new image
	repo, tag string
	context   []byte // of the build, as a tar
}

const offlineDockerfile = "FROM scratch\nCOPY root/ /\n"

// newOfflineImage collects the parts.
func newOfflineImage(ctx context.Context, image launch.Image) (*offlineImage, error) {
	if runtime.GOOS != "linux" {
		return nil, errNoBuild
	}
	programs, err := image.Programs()
	if err != nil {
		return nil, err
	}
	files := map[string]string{}
	var order []string
	for _, name := range slices.Sorted(maps.Keys(programs)) {
		program := programs[name]
		if start, err := beginning(program); err != nil || start == "#!" {
			return nil, errors.Join(err, fmt.Errorf("%s is a script, not a program that could be put into an image", program))
		}
		files["usr/bin/"+name] = program
		order = append(order, "usr/bin/"+name)
	}
	for _, program := range slices.Clone(order) {
		libraries, err := librariesOf(ctx, files[program])
		if err != nil {
			return nil, err
		}
		for _, library := range libraries {
			name := strings.TrimPrefix(library, "/")
			if _, known := files[name]; !known {
				order = append(order, name)
			}
			files[name] = library
		}
	}
	var archive bytes.Buffer
	w := tar.NewWriter(&archive)
	add := func(name string, mode int64, contents []byte) error {
		header := &tar.Header{Name: name, Mode: mode, Size: int64(len(contents))}
		if err := w.WriteHeader(header); err != nil {
			return err
		}
		_, err := w.Write(contents)
		return err
	}
	if err := add("Dockerfile", 0o644, []byte(offlineDockerfile)); err != nil {
		return nil, err
	}
	for _, name := range order {
		contents, err := os.ReadFile(files[name])
		if err != nil {
			return nil, fmt.Errorf("collect the parts of an image: %w", err)
		}
		if err := add("root/"+name, 0o755, contents); err != nil {
			return nil, err
		}
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	sum := sha256.Sum256(archive.Bytes())
	tag := "local-" + hex.EncodeToString(sum[:6])
	return &offlineImage{name: image.Repository + ":" + tag, repo: image.Repository, tag: tag, context: archive.Bytes()}, nil
}

func (i *offlineImage) dockerfile() testcontainers.FromDockerfile {
	return testcontainers.FromDockerfile{
		ContextArchive: bytes.NewReader(i.context),
		Repo:           i.repo, Tag: i.tag, KeepImage: true,
	}
}

// beginning are the first two bytes of a file.
func beginning(file string) (string, error) {
	f, err := os.Open(file)
	if err != nil {
		return "", fmt.Errorf("look at the server's program: %w", err)
	}
	defer f.Close()
	var start [2]byte
	_, err = io.ReadFull(f, start[:])
	return string(start[:]), err
}

// librariesOf asks ldd which shared libraries a binary loads, the loader itself
// included; a static one needs none. Its lines are
//
//	libm.so.6 => /lib/x86_64-linux-gnu/libm.so.6 (0x00007f…)
//	/lib64/ld-linux-x86-64.so.2 (0x00007f…)
func librariesOf(ctx context.Context, binary string) ([]string, error) {
	output, err := exec.CommandContext(ctx, "ldd", binary).CombinedOutput()
	if err != nil {
		if strings.Contains(string(output), "not a dynamic executable") || strings.Contains(string(output), "Not a valid dynamic program") {
			return nil, nil
		}
		return nil, fmt.Errorf("list the libraries of %s: %w (%s)", binary, err, strings.TrimSpace(string(output)))
	}
	var libraries []string
	for line := range strings.Lines(string(output)) {
		if strings.Contains(line, "not found") {
			return nil, fmt.Errorf("a library of %s is missing: %s", binary, strings.TrimSpace(line))
		}
		for field := range strings.FieldsSeq(line) {
			if filepath.IsAbs(field) {
				libraries = append(libraries, field)
			}
		}
	}
	return libraries, nil
}
