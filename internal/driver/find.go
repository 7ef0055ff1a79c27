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

// PathVariable is the environment variable that lists additional directories with drivers. lockbench searches them
// before its usual directories.
const PathVariable = "LOCKBENCH_DRIVERS"

// begins matches exec: at the start of a list of strategies and after a comma or a plus sign. A driver's command
// follows it.
var begins = regexp.MustCompile(`(^|[,+])[\s\v\x{85}\pZ]*` + Prefix)

// Finder returns the strategy for a driver's command, which is the text after exec: in a list of strategies.
type Finder func(command string) (strategies.Variant, error)

// Asked returns a Finder that starts each driver once, to request its claims.
func Asked(ctx context.Context) Finder {
	return func(command string) (strategies.Variant, error) { return Lookup(ctx, command) }
}

// Unasked is a Finder that starts no driver. It takes the name of the strategy from the command and assumes that the
// lock claims exclusion, recovery and fencing.
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
	return strategies.Variant{}, fmt.Errorf("%s starts a program, which is allowed only on the command line",
		named(command))
}

// Parse returns the strategies of lists such as pubsub,exec:redis-py,fair+exec:./mine --fast. A command is the text
// between exec: and the next ",exec:" or "+exec:" or the end of the list. Parse converts each command to a strategy
// with find.
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

// numbered replaces the command of each driver in list with a number, counting up from first, and returns the commands.
// The parser of strategies cannot read a command, since it may contain commas and plus signs.
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

// named returns the name of the strategy that a driver's command implements: exec: and the command with single spaces.
func named(command string) string { return Prefix + strings.Join(strings.Fields(command), " ") }

// usual holds the time limits of drivers outside tests.
var usual = patience{startPatience, runPatience, stopPatience}

// variant returns the strategy that a driver implements. Each call of its Open starts a new process of the driver.
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

// Infos starts each driver on the path. It returns the Infos of the drivers that respond, and the joined errors of
// those that do not.
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

// resolve splits a command into words. If the first word is the name of a driver, resolve replaces it with the driver's
// absolute path; a word with a slash is a path and stays unchanged. resolve returns an error if there is no such
// driver, or if another user could have created or changed the driver.
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
			return nil, fmt.Errorf("not installed; run: lockbench drivers install %s", language)
		}
	}
	places := "lockbench's directory drivers"
	if named := os.Getenv(PathVariable); named != "" {
		places = named + " or " + places
	}
	return nil, fmt.Errorf("there is no driver %q in %s; lockbench drivers lists the drivers, and exec:./%s runs a "+
		"program of the current directory", words[0], places, words[0])
}

// path returns the directories in which lockbench searches for drivers, in this order: the directories in PathVariable,
// DIRECTORY/drivers and DIRECTORY/../drivers, where DIRECTORY contains the lockbench program, and InstallDirectory. The
// current directory is not among them, because it may belong to another user.
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

// InstallDirectory returns the directory in which "lockbench drivers install" installs drivers: lockbench/drivers below
// $XDG_DATA_HOME or ~/.local/share (https://specifications.freedesktop.org/basedir-spec/latest/).
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
// directory of path; if several directories contain the name, the first one wins. All omits drivers that another user
// could have created or changed.
func All() map[string]string {
	all, _ := search()
	return all
}

// search returns the paths of the drivers by name. For each driver that another user could have created or changed, it
// returns an error with the reason instead.
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
