//go:build !linux

package observe

import "os/exec"

// child is a command. lockbench can find the descendants of a command only on Linux.
type child struct {
	cmd    *exec.Cmd
	exited chan struct{} // closed when the command has ended
}

func begin(cmd *exec.Cmd) (*child, error) {
	p := &child{cmd, make(chan struct{})}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	go func() { // ends with the command, which kill ends
		defer close(p.exited)
		_ = cmd.Wait()
	}()
	return p, nil
}

func (p *child) terminate() { p.kill() }
func (p *child) kill()      { _ = p.cmd.Process.Kill() } // an error means that it has ended
