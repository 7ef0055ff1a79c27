package zookeeper

import (
	"encoding/binary"
	"errors"

	"github.com/go-zookeeper/zk"
)

// operations maps codes to requests, without those that open or keep a session. See
// org.apache.zookeeper.ZooDefs.OpCode.
var operations = map[int32]string{
	1: "create", 2: "delete", 3: "exists", 4: "getData", 5: "setData", 6: "getACL", 7: "setACL", 8: "getChildren",
	9: "sync", 12: "getChildren2", 13: "check", 14: "multi", 15: "create2", 19: "createContainer", 21: "createTTL",
}

// Commands returns the names of the requests in data written to a server: each begins with its length,
// its number and its code. A request for a session has no name.
func (*Server) Commands(written []byte) []string {
	const head = 12
	var names []string
	for len(written) >= head {
		length := int(binary.BigEndian.Uint32(written))
		number, code := binary.BigEndian.Uint32(written[4:]), int32(binary.BigEndian.Uint32(written[8:]))
		if name, ok := operations[code]; ok && number != 0 {
			names = append(names, name)
		}
		if length < 0 || length > len(written)-4 {
			break
		}
		written = written[4+length:]
	}
	return names
}

// refusals are the errors for missing rights.
var refusals = []struct {
	code string
	err  error
}{
	{"NOAUTH", zk.ErrNoAuth}, {"AUTHFAILED", zk.ErrAuthFailed}, {"INVALIDACL", zk.ErrInvalidACL},
}

// Refused returns the code of a refusal; "" for any other error. A server without a quorum sends no code:
// it closes the connection.
func (*Server) Refused(err error) string {
	for _, r := range refusals {
		if errors.Is(err, r.err) {
			return r.code
		}
	}
	return ""
}

// Unauthorised says whether that code means a missing right.
func (*Server) Unauthorised(code string) bool { return code != "" }
