package ops

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/hdfsckpt/hdfsckpt/cmd/hdfsckpt/internal/report"
)

// Cluster is what is known of an HDFS before anything is written to it.
type Cluster struct {
	// Files are those of the configuration, in the order of reading. ConfigErr tells why it is of no use.
	Files     []string
	ConfigErr error
	// Client is the code that talks to it.
	Client string
	// Nameservice is the authority of the URL; NameNodes are its addresses.
	Nameservice string
	NameNodes   []NameNode
	// Kerberos and Protection (of data transfer) are what the configuration asks for.
	Kerberos   bool
	Protection string
	// User is who HDFS is told to be asked by, with Kerberos the principal, whose ticket ends at Expires.
	User     string
	Source   string
	Expires  time.Time
	LoginErr error
	// ConfigTime, LoginTime and NameNodeTime are how long each took.
	ConfigTime, LoginTime, NameNodeTime time.Duration
}

// NameNode is one of a cluster's.
type NameNode struct {
	Address string
	State   NameNodeState
	Err     error // why it is not active
}

// NameNodeState is what a NameNode answered.
type NameNodeState string

// The states of a NameNode.
const (
	Active      NameNodeState = "active"
	Standby     NameNodeState = "standby"
	Unreachable NameNodeState = "unreachable"
	Refusing    NameNodeState = "refusing" // it answers, but not to us
)

// Steps puts what is known into steps. A step that failed makes those after it pointless: they are skipped.
func (c *Cluster) Steps(ctx context.Context) []report.Step {
	all := []report.Step{
		c.step(ctx, report.StepConfiguration, c.configuration(), c.ConfigErr, c.ConfigTime),
		c.step(ctx, report.StepLogin, c.login(), c.LoginErr, c.LoginTime),
		c.step(ctx, report.StepNameNodes, c.nameNodes(), c.noneActive(), c.NameNodeTime),
	}
	failed := false
	for i := range all {
		if failed {
			all[i] = SkippedStep(all[i].Name)
		}
		failed = failed || all[i].Status == report.StepFailed
	}
	return all
}

// SkippedStep is a step that a failure before it made pointless.
func SkippedStep(name report.StepName) report.Step {
	return report.Step{Name: name, Status: report.StepSkipped, Details: []string{}}
}

func (c *Cluster) step(ctx context.Context, name report.StepName, details []string, err error, took time.Duration) report.Step {
	s := report.Step{Name: name, Status: report.StepOK, Details: details, Milliseconds: took.Milliseconds()}
	if err != nil {
		s.Status, s.Problem = report.StepFailed, report.Diagnose(ctx, name, err)
	}
	return s
}

func (c *Cluster) configuration() []string {
	details := append([]string{}, c.Files...)
	if len(c.Files) == 0 {
		details = append(details, "no file: only what the URL says")
	}
	if c.ConfigErr != nil {
		return details
	}
	security := "no Kerberos"
	if c.Kerberos {
		security = "Kerberos"
	}
	if c.Protection != "" {
		security += ", data transfer with protection " + c.Protection
	}
	addresses := ""
	for i, n := range c.NameNodes {
		if i > 0 {
			addresses += ", "
		}
		addresses += n.Address
	}
	return append(details, fmt.Sprintf("%s is %s", c.Nameservice, addresses), security, "client "+c.Client)
}

func (c *Cluster) login() []string {
	switch {
	case !c.Kerberos:
		return []string{"user " + c.User + ", whom HDFS believes without proof"}
	case c.LoginErr != nil:
		return []string{}
	}
	line := c.User
	if c.Source != "" {
		line += " by " + c.Source
	}
	if !c.Expires.IsZero() {
		line += ", until " + c.Expires.UTC().Format(time.RFC3339)
	}
	return []string{line}
}

func (c *Cluster) nameNodes() []string {
	details := []string{}
	for _, n := range c.NameNodes {
		details = append(details, fmt.Sprintf("%s %s", n.Address, n.State))
	}
	return details
}

// noneActive is the reasons of all NameNodes if none is active.
func (c *Cluster) noneActive() error {
	var reasons []error
	for _, n := range c.NameNodes {
		if n.State == Active {
			return nil
		}
		if n.Err != nil {
			reasons = append(reasons, fmt.Errorf("%s: %w", n.Address, n.Err))
		}
	}
	if len(reasons) == 0 {
		return errors.New("no NameNode is known")
	}
	return errors.Join(reasons...)
}
