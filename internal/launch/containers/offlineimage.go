package containers

import (
	"archive/tar"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/lockbench/lockbench/internal/launch"
)

// offlineImage is an image built from scratch from the machine's own programs and their libraries, for
// machines without a registry.
type offlineImage struct {
	name      string // its tag depends on the parts: a new server makes a new image
	repo, tag string
	parts     launch.Parts
}

// newOfflineImage collects the parts. The tag depends on the files' sizes and times, so that a start
// need not read their contents.
func newOfflineImage(ctx context.Context, image launch.Image) (*offlineImage, error) {
	if runtime.GOOS != "linux" {
		return nil, errNoBuild
	}
	parts, err := image.Parts()
	if err != nil {
		return nil, err
	}
	parts.Files = maps.Clone(parts.Files)
	for _, place := range slices.Sorted(maps.Keys(parts.Files)) {
		file := parts.Files[place]
		start, err := beginning(file)
		switch {
		case err != nil:
			return nil, err
		case strings.HasPrefix(start, "#!") && strings.HasPrefix(place, "usr/bin/"):
			return nil, fmt.Errorf("%s is a script, not a program that could be put into an image", file)
		case start != "\x7fELF":
			continue
		}
		libraries, err := librariesOf(ctx, file, parts.Files)
		if err != nil {
			return nil, err
		}
		for _, library := range libraries {
			parts.Files[strings.TrimPrefix(library, "/")] = library
		}
	}
	sum := sha256.New()
	for _, place := range slices.Sorted(maps.Keys(parts.Files)) {
		about, err := os.Stat(parts.Files[place])
		if err != nil {
			return nil, fmt.Errorf("collect the parts of an image: %w", err)
		}
		fmt.Fprintln(sum, place, about.Size(), about.ModTime().UnixNano())
	}
	fmt.Fprintln(sum, dockerfile(parts), parts.Open)
	for _, place := range slices.Sorted(maps.Keys(parts.Texts)) {
		fmt.Fprintf(sum, "%s %q\n", place, parts.Texts[place])
	}
	tag := "local-" + hex.EncodeToString(sum.Sum(nil)[:6])
	return &offlineImage{name: image.Repository + ":" + tag, repo: image.Repository, tag: tag, parts: parts}, nil
}

// dockerfile returns the Dockerfile for the parts.
func dockerfile(parts launch.Parts) string {
	return strings.Join(append([]string{"FROM scratch", "COPY root/ /"}, parts.Lines...), "\n") + "\n"
}

// archive writes the build context as a tar.
func (i *offlineImage) archive(to io.Writer) error {
	w := tar.NewWriter(to)
	for _, dir := range i.parts.Open {
		if err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: "root/" + dir + "/", Mode: 0o1777}); err != nil {
			return err
		}
	}
	texts := map[string]string{"Dockerfile": dockerfile(i.parts)}
	for place, text := range i.parts.Texts {
		texts["root/"+place] = text
	}
	for _, place := range slices.Sorted(maps.Keys(texts)) {
		if err := w.WriteHeader(&tar.Header{Name: place, Mode: 0o644, Size: int64(len(texts[place]))}); err != nil {
			return err
		}
		if _, err := io.WriteString(w, texts[place]); err != nil {
			return err
		}
	}
	for _, place := range slices.Sorted(maps.Keys(i.parts.Files)) {
		if err := add(w, "root/"+place, i.parts.Files[place]); err != nil {
			return fmt.Errorf("collect the parts of an image: %w", err)
		}
	}
	return w.Close()
}

// add writes a file of this machine into the archive.
func add(w *tar.Writer, place, file string) error {
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer f.Close()
	about, err := f.Stat()
	if err != nil {
		return err
	}
	if err := w.WriteHeader(&tar.Header{Name: place, Mode: 0o755, Size: about.Size()}); err != nil {
		return err
	}
	_, err = io.Copy(w, f)
	return err
}

// beginning returns the first bytes of a file, up to four.
func beginning(file string) (string, error) {
	f, err := os.Open(file)
	if err != nil {
		return "", fmt.Errorf("look at the server's program: %w", err)
	}
	defer f.Close()
	var start [4]byte
	n, err := io.ReadFull(f, start[:])
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		err = nil
	}
	return string(start[:n]), err
}

// librariesOf asks ldd which shared libraries a binary loads, including the loader; a static binary
// needs none. Its lines are
//
//	libm.so.6 => /lib/x86_64-linux-gnu/libm.so.6 (0x00007f…)
//	/lib64/ld-linux-x86-64.so.2 (0x00007f…)
//
// A library that ldd does not find must be among the parts: some programs, such as Java, find their
// libraries themselves.
func librariesOf(ctx context.Context, binary string, parts map[string]string) ([]string, error) {
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
			name, _, _ := strings.Cut(strings.TrimSpace(line), " ")
			if among(parts, name) {
				continue
			}
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

// among says whether one of the parts has that file name.
func among(parts map[string]string, name string) bool {
	for place := range parts {
		if path.Base(place) == name {
			return true
		}
	}
	return false
}
