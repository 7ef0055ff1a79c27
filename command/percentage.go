package command

import (
	"fmt"
	"strconv"
	"strings"
)

// percentage parses a share such as 5% or 0.05. It refuses a bare 5, which could mean
// 5 % or 500 %.
func percentage(target *float64) *value {
	return &value{
		kind: "percent", text: func() string { return strconv.FormatFloat(*target*100, 'g', 4, 64) + "%" },
		set: func(s string) error {
			digits, percent := strings.CutSuffix(strings.TrimSpace(s), "%")
			number, err := strconv.ParseFloat(strings.TrimSpace(digits), 64)
			switch {
			case err != nil || number != number:
				return fmt.Errorf("%q is not a percentage such as 5%%", s)
			case percent:
				number /= 100
			case number >= 1:
				return fmt.Errorf("%q is %g %% as it stands, write %s%% for a percentage", s, number*100, digits)
			}
			if number < 0 || number >= 1 {
				return fmt.Errorf("%q is not from 0%% to 99%%", s)
			}
			*target = number
			return nil
		},
	}
}
