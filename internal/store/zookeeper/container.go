package zookeeper

import (
	"archive/zip"
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/lockbench/lockbench/internal/launch"
	"github.com/lockbench/lockbench/internal/store"
)

const (
	// repository is that of images built from this machine's ZooKeeper.
	repository = "lockbench-zookeeper"
	// inside is the port in the container behind a published one, place the directory of its files.
	inside, place = 2181, "/lockbench"
)

// image says how to get the image of the containers: LOCKBENCH_ZOOKEEPER_IMAGE, else ZooKeeper's own
// image, else one built from this machine's Java and jar files.
func image(o store.Options) launch.Image {
	return launch.Image{
		Wanted: cmp.Or(o.Image, os.Getenv("LOCKBENCH_ZOOKEEPER_IMAGE")), Default: "zookeeper:3.9",
		Repository: repository, Package: "zookeeper and its Java", Parts: func() (launch.Parts, error) {
			found, err := lookUp()
			if err != nil {
				return launch.Parts{}, err
			}
			return found.parts()
		},
	}
}

// parts returns the files of a Java, and the jar files with those that they name.
func (s software) parts() (launch.Parts, error) {
	java, err := filepath.EvalSymlinks(s.java)
	if err != nil {
		return launch.Parts{}, err
	}
	files := map[string]string{}
	if err := tree(filepath.Dir(filepath.Dir(java)), files); err != nil {
		return launch.Parts{}, fmt.Errorf("find the files of Java: %w", err)
	}
	for pattern := range strings.SplitSeq(s.jars, ":") {
		if strings.HasSuffix(pattern, "*") {
			pattern += ".jar"
		}
		jars, _ := filepath.Glob(pattern) // the pattern is valid
		for _, jar := range jars {
			if err := withNamed(jar, files); err != nil {
				return launch.Parts{}, err
			}
		}
	}
	return launch.Parts{Files: files}, nil
}

// tree adds the files below a directory by their paths, and follows links.
func tree(dir string, files map[string]string) error {
	return filepath.WalkDir(dir, func(file string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		about, err := os.Stat(file)
		switch {
		case errors.Is(err, fs.ErrNotExist): // a link to something that is not installed
			return nil
		case err != nil:
			return err
		case entry.IsDir() && slices.Contains([]string{"jmods", "legal", "man", "demo", "include"}, entry.Name()):
			return fs.SkipDir
		case about.Mode().IsRegular() && entry.Name() != "src.zip" && !strings.HasSuffix(file, ".jsa"):
			files[strings.TrimPrefix(file, "/")] = file
		case about.IsDir() && entry.Type()&fs.ModeSymlink != 0:
			return linked(file, files)
		}
		return nil
	})
}

// linked adds what is below a link to a directory, under the link's name.
func linked(link string, files map[string]string) error {
	real, err := filepath.EvalSymlinks(link)
	if err != nil {
		return err
	}
	below := map[string]string{}
	if err := tree(real, below); err != nil {
		return err
	}
	for _, file := range below {
		files[strings.TrimPrefix(link+strings.TrimPrefix(file, real), "/")] = file
	}
	return nil
}

// withNamed adds a jar file and those in its manifest's class path.
func withNamed(jar string, files map[string]string) error {
	where := strings.TrimPrefix(jar, "/")
	if files[where] != "" {
		return nil
	}
	if _, err := os.Stat(jar); err != nil {
		return nil //nolint:nilerr // a class path may name what is not installed
	}
	files[where] = jar
	named, err := classPath(jar)
	if err != nil {
		return fmt.Errorf("read %s: %w", jar, err)
	}
	for _, other := range named {
		if !filepath.IsAbs(other) {
			other = filepath.Join(filepath.Dir(jar), other)
		}
		if err := withNamed(other, files); err != nil {
			return err
		}
	}
	return nil
}

// classPath reads the class path in a jar's manifest; a line that begins with a space continues it.
func classPath(jar string) ([]string, error) {
	archive, err := zip.OpenReader(jar)
	if err != nil {
		return nil, err
	}
	defer archive.Close()
	manifest, err := archive.Open("META-INF/MANIFEST.MF")
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer manifest.Close()
	var text string
	within := false
	lines := bufio.NewScanner(manifest)
	for lines.Scan() {
		rest, goesOn := strings.CutPrefix(lines.Text(), " ")
		if !goesOn {
			rest, within = strings.CutPrefix(lines.Text(), "Class-Path: ")
		}
		if within {
			text += rest
		}
	}
	return strings.Fields(text), lines.Err()
}

// contain starts the member in a container.
func (m member) contain(ctx context.Context, engine launch.Engine, image, network, runID string, o store.Options) (launch.Started, error) {
	java, jars := "java", "lib/*" // relative to the working directory of ZooKeeper's own image
	if strings.HasPrefix(image, repository+":") {
		found, err := lookUp()
		if err != nil {
			return nil, err
		}
		if java, err = filepath.EvalSymlinks(found.java); err != nil {
			return nil, err
		}
		jars = found.jars
	}
	return launch.InContainer(ctx, engine, launch.Container{
		Image: image, RunID: runID, Network: network, Pick: m.pick, CPUs: m.cpus, Inside: inside, Logf: o.Logf, Beside: m.beside,
		Entrypoint: []string{java}, User: "0", // root owns these files in every image
		Command: func(string, int, bool) []string { return m.options(place, jars) },
		Files: func(port int) map[string]string {
			files := map[string]string{place + "/" + dataDir + "/myid": fmt.Sprintln(m.id)}
			for name, text := range quiet {
				files[place+"/"+name] = text
			}
			bind := "127.0.0.1"
			if port == inside { // behind a published port
				bind = "0.0.0.0"
			}
			files[place+"/"+configFile] = m.config(place, bind, port)
			return files
		},
		Ready: func(ctx context.Context, c launch.Contained) error { return ready(ctx, c) },
	}, "java")
}
