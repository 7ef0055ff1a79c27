package pipeline

import (
	"strconv"

	"github.com/redis/go-redis/v9"

	"github.com/lockbench/lockbench/strategies/internal/indeterminate"
)

// plan lists the commands of an exchange and, for each command, the calls to which its reply belongs.
type plan struct {
	commands []redis.Cmder // all commands, in the order of sending
	own      []*call       // calls with their own command
	runs     []*call       // calls that share run
	run      *redis.Cmd    // the run of the script; nil if no call needs it
	timed    []*call       // calls that share time
	time     *redis.Cmd    // the command TIME; nil if no call needs it
}

func newPlan(script string, calls []*call) *plan {
	p := &plan{commands: make([]redis.Cmder, 0, len(calls)+1)}
	for _, one := range calls {
		if one.command == nil {
			p.runs = append(p.runs, one)
			continue
		}
		p.own = append(p.own, one)
		p.add(one.command)
		if one.timed {
			p.timed = append(p.timed, one)
		}
	}
	if len(p.runs) > 0 {
		words := make([]any, 3, 3+2*len(p.runs))
		words[0], words[1], words[2] = "evalsha", script, len(p.runs)
		for _, one := range p.runs {
			words = append(words, one.key)
		}
		for _, one := range p.runs {
			words = append(words, one.arg)
		}
		p.run = redis.NewCmd(calls[0].values, words...)
		p.add(p.run)
	}
	if len(p.timed) > 0 { // last, so that Redis reads its clock after all commands
		p.time = redis.NewCmd(calls[0].values, "time")
		p.add(p.time)
	}
	return p
}

func (p *plan) add(command *redis.Cmd) {
	p.commands = append(p.commands, indeterminate.Once{Cmder: command})
}

// refused handles the error of a pipeline. go-redis usually sets the error on the commands. If Redis has refused the
// handshake of a connection, or a hook has not sent the commands, they have neither an error nor a reply, and refused
// sets the error.
func (p *plan) refused(err error) {
	if err == nil {
		return
	}
	for _, command := range p.commands {
		if one := command.(indeterminate.Once).Cmder.(*redis.Cmd); one.Err() == nil && one.Val() == nil {
			one.SetErr(err)
		}
	}
}

// deliver gives each call its reply or error. It skips calls that are already over. It reports whether Redis has
// replied to any command.
func (p *plan) deliver() (progress bool) {
	settle := func(command *redis.Cmd) error {
		err := classifyError(command.Err())
		if progress = progress || err == nil || answered(err); answered(err) {
			return nil
		}
		return err
	}
	for _, one := range p.own {
		if err := settle(one.command); !one.over {
			one.err = err
		}
	}
	if p.run != nil {
		err := settle(p.run)
		all, _ := p.run.Val().([]any)
		for i, one := range p.runs {
			if one.over {
				continue
			}
			one.err, one.reply = err, p.run.Val()
			switch {
			case p.run.Err() != nil:
				one.reply = p.run.Err()
			case len(all) == len(p.runs):
				one.reply = all[i]
			}
		}
	}
	if p.time != nil {
		err := settle(p.time)
		for _, one := range p.timed {
			if one.over || one.err != nil {
				continue
			}
			if one.err = err; p.time.Err() != nil {
				one.reply = p.time.Err()
			} else if now, ok := micros(p.time.Val()); ok {
				one.reply = now
			} else {
				one.reply = p.time.Val()
			}
		}
	}
	return progress
}

// micros parses the reply to TIME, seconds and microseconds as strings, and returns the time in µs.
func micros(reply any) (now int64, ok bool) {
	parts, _ := reply.([]any)
	if len(parts) != 2 {
		return 0, false
	}
	var numbers [2]int64
	for i, part := range parts {
		text, _ := part.(string)
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return 0, false
		}
		numbers[i] = n
	}
	return numbers[0]*1e6 + numbers[1], true
}
