package driver

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/lockbench/lockbench/drivers"
	"github.com/lockbench/lockbench/internal/untrusted"
	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/strategies/goredis"
)

// Prefix is the beginning of the name of each strategy that a driver implements: exec:NAME or exec:COMMAND.
const Prefix = "exec:"

// PathVariable is the environment variable with the directories that lockbench searches for drivers before those of the
// installation.
const PathVariable = "LOCKBENCH_DRIVERS"

// begins matches the beginning of a driver in a list: exec: after a comma, a plus sign or at the start.
var begins = regexp.MustCompile(`(^|[,+])[\s\v\x{85}\pZ]*` + Prefix)

// Finder converts a driver's command to a strategy.
type Finder func(command string) (strategies.Variant, error)

// Asked returns a Finder that starts each driver and requests its claims.
func Asked(ctx context.Context) Finder {
	return func(command string) (strategies.Variant, error) { return Lookup(ctx, command) }
}

// Unasked is a Finder that starts no driver. It knows only the name of the strategy and assumes its claims.
func Unasked(command string) (strategies.Variant, error) {
	words, err := resolve(command)
	if err != nil {
		return strategies.Variant{}, fmt.Errorf("%s: %w", named(command), err)
	}
	info := unknown()
	info.Claims.Exclusion, info.Claims.Recovery, info.Claims.Fencing = true, true, true // or a plan omits the driver
	return variant(named(command), words, Hello{Info: info}, usual), nil
}

// Refused is a Finder that returns an error for each driver. It is for lists from files, which another author may have
// written.
func Refused(command string) (strategies.Variant, error) {
	return strategies.Variant{}, fmt.Errorf("%s starts a program, which only the command line may request", named(command))
}

// Parse returns the strategies of lists such as pubsub,exec:redis-py,fair+exec:./mine --fast. A command is the text
// between exec: and the next ",exec:" or "+exec:"; find converts it to a strategy.
func Parse(find Finder, lists ...string) ([]strategies.Variant, error) {
	var texts, commands []string
	for _, list := range lists {
		text, more := numbered(list, len(commands))
		texts, commands = append(texts, text), append(commands, more...)
	}
	return strategies.ParseWith(strings.Join(texts, ","),
		func(name string, settings map[string]string) (strategies.Variant, error) {
			number, found := strings.CutPrefix(name, Prefix)
			if !found {
				return strategies.NewVariant(name, settings)
			}
			n, err := strconv.Atoi(number)
			if err == nil && (n < 0 || n >= len(commands)) {
				err = strconv.ErrRange
			}
			if err != nil {
				return strategies.Variant{}, fmt.Errorf("driver %q: %w", name, err)
			}
			return find(commands[n])
		})
}

// Cut splits a list of strategies at its first driver. rest begins with the separator before that driver, and is "" if
// the list has no driver.
func Cut(list string) (before, rest string) {
	if place := begins.FindStringIndex(list); place != nil {
		return list[:place[0]], list[place[0]:]
	}
	return list, ""
}

// numbered replaces the commands of the drivers with their numbers, which start at first, and returns the commands. The
// parser of strategies cannot read a command, since it may contain commas and plus signs.
func numbered(list string, first int) (text string, commands []string) {
	places := begins.FindAllStringIndex(list, -1)
	if len(places) == 0 {
		return list, nil
	}
	text = list[:places[0][0]]
	for i, place := range places {
		end := len(list)
		if i+1 < len(places) {
			end = places[i+1][0]
		}
		text += list[place[0]:place[1]] + strconv.Itoa(first+i)
		commands = append(commands, strings.TrimSpace(list[place[1]:end]))
	}
	return text, commands
}

// Lookup returns the strategy of a driver's command. It starts the driver once, to request its claims.
func Lookup(ctx context.Context, command string) (strategies.Variant, error) {
	words, err := resolve(command)
	name := named(command)
	if err != nil {
		return strategies.Variant{}, fmt.Errorf("%s: %w", name, err)
	}
	hello, err := Greet(ctx, words)
	if err != nil {
		return strategies.Variant{}, fmt.Errorf("%s: %w", name, err)
	}
	return variant(name, words, hello, usual), nil
}

// named returns the strategy name of a driver's command.
func named(command string) string { return Prefix + strings.Join(strings.Fields(command), " ") }

// usual has the time limits of drivers outside tests.
var usual = patience{startPatience, runPatience, stopPatience}

// variant returns the strategy of a driver. Each Open of it starts a process.
func variant(name string, words []string, hello Hello, p patience) strategies.Variant {
	v := strategies.Unlisted(hello.Info, func(c goredis.Config) (*Driver, error) {
		d, _, err := launched(context.Background(), words, p)
		if err != nil {
			return nil, refusal{err}
		}
		d.config = c
		return d, nil
	})
	v.Strategy.Info.Name = untrusted.Printable(name)
	return v
}

// Greet starts a driver, requests its Hello and ends it.
func Greet(ctx context.Context, words []string) (Hello, error) {
	d, hello, err := launched(ctx, words, usual)
	if err != nil {
		return hello, err
	}
	return hello, d.Close()
}

// Infos starts each driver on the path and returns the Infos of those that respond, and the joined errors of the
// others.
func Infos(ctx context.Context) (infos []strategies.Info, silent error) {
	var mu sync.Mutex
	var asking sync.WaitGroup
	for name, file := range All() {
		asking.Go(func() {
			hello, err := Greet(ctx, []string{file})
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				silent = errors.Join(silent, fmt.Errorf("%s%s: %w", Prefix, name, err))
			} else {
				infos = append(infos, hello.Info)
			}
		})
	}
	asking.Wait()
	return infos, silent
}

// resolve returns the words of a command. The first is a path, a driver's name, or a program in PATH.
func resolve(command string) ([]string, error) {
	words := strings.Fields(command)
	if len(words) == 0 {
		return nil, errors.New("the name of the driver is missing: use exec:NAME, or exec:COMMAND with its arguments")
	}
	if strings.Contains(words[0], string(filepath.Separator)) {
		return words, nil
	}
	found, refused := search()
	if file, ok := found[words[0]]; ok {
		return append([]string{file}, words[1:]...), nil
	}
	if why := refused[words[0]]; why != nil {
		return nil, why
	}
	for _, language := range drivers.Languages() {
		if slices.Contains(drivers.Of(language), words[0]) {
			return nil, fmt.Errorf("not installed: lockbench drivers install %s", language)
		}
	}
	places := "lockbench's directory drivers"
	if named := os.Getenv(PathVariable); named != "" {
		places = named + " or " + places
	}
	return nil, fmt.Errorf("there is no driver %q in %s; lockbench drivers lists the drivers, and exec:./%s runs a "+
		"program of the current directory", words[0], places, words[0])
}

// path returns the directories with drivers, in this order: those of PathVariable, drivers in lockbench's own directory
// and next to it (as in a repository with bin/lockbench), and the one of lockbench drivers install. The current
// directory is not among them, because it may belong to another user.
func path() []string {
	dirs := filepath.SplitList(os.Getenv(PathVariable))
	if program, err := os.Executable(); err == nil {
		if real, err := filepath.EvalSymlinks(program); err == nil {
			program = real
		}
		bin := filepath.Dir(program)
		dirs = append(dirs, filepath.Join(bin, "drivers"), filepath.Join(filepath.Dir(bin), "drivers"))
	}
	if installed, err := InstallDirectory(); err == nil {
		dirs = append(dirs, installed)
	}
	return slices.DeleteFunc(dirs, func(dir string) bool { return dir == "" })
}

// InstallDirectory returns the directory of the user's drivers, below $XDG_DATA_HOME or ~/.local/share
// (https://specifications.freedesktop.org/basedir-spec/latest/).
func InstallDirectory() (string, error) {
	data := os.Getenv("XDG_DATA_HOME")
	if !filepath.IsAbs(data) { // the specification ignores a relative one
		home, err := os.UserHomeDir()
		if err != nil {
			return "", fmt.Errorf("find the directory of drivers: %w", err)
		}
		data = filepath.Join(home, ".local", "share")
	}
	return filepath.Join(data, "lockbench", "drivers"), nil
}

// All returns the absolute paths of all drivers by name. A driver is an executable file NAME or NAME/driver in a
// directory of path.
func All() map[string]string {
	all, _ := search()
	return all
}

// search returns the drivers by name, and the reasons against drivers that another user could have created or changed.
func search() (all map[string]string, refused map[string]error) {
	all, refused = map[string]string{}, map[string]error{}
	for _, dir := range slices.Backward(path()) {
		entries, _ := os.ReadDir(dir) // it may not exist
		for _, entry := range entries {
			file := filepath.Join(dir, entry.Name())
			if entry.IsDir() {
				file = filepath.Join(file, "driver")
			}
			about, err := os.Stat(file)
			if err != nil || !about.Mode().IsRegular() || about.Mode().Perm()&0o111 == 0 {
				continue
			}
			absolute, err := filepath.Abs(file)
			if err != nil {
				continue
			}
			if refused[entry.Name()] = onlyOurs(absolute); refused[entry.Name()] == nil {
				all[entry.Name()] = absolute
			}
		}
	}
	return all, refused
}
