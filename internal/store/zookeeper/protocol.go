package zookeeper

import (
	"encoding/binary"
	"errors"

	"github.com/go-zookeeper/zk"
)

// operations are ZooKeeper's requests by their codes, without those that open or keep a
// session. See org.apache.zookeeper.ZooDefs.OpCode.
var operations = map[int32]string{
	1: "create", 2: "delete", 3: "exists", 4: "getData", 5: "setData", 6: "getACL", 7: "setACL", 8: "getChildren",
	9: "sync", 12: "getChildren2", 13: "check", 14: "multi", 15: "create2", 19: "createContainer", 21: "createTTL",
}

// Commands are the names of the requests in a piece of what is written to a server: each is
// its length, its number and its code. The request for a session has none.
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

// refusals are what servers say to who may not do something.
var refusals = []struct {
	code string
	err  error
}{
	{"NOAUTH", zk.ErrNoAuth}, {"AUTHFAILED", zk.ErrAuthFailed}, {"INVALIDACL", zk.ErrInvalidACL},
}

// Refused is the code by which a server refuses; "" for any other error. A server without a
// quorum says nothing: it hangs up.
func (*Server) Refused(err error) string {
	for _, r := range refusals {
		if errors.Is(err, r.err) {
			return r.code
		}
	}
	return ""
}

// Unauthorised says whether that code is of a right that is missing.
func (*Server) Unauthorised(code string) bool { return code != "" }
