package proc

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// parentOf makes the test binary a parent that starts a child, prints its ID and waits to be killed.
const parentOf = "HDFSCKPT_PROC_PARENT"

func TestMain(m *testing.M) {
	if os.Getenv(parentOf) == "" {
		m.Run() // its result is the status
		return
	}
	c, err := NewStarter().Start(exec.Command("sleep", "600"))
	if err != nil {
		return // whoever reads the output misses it
	}
	fmt.Println(c.ID.PID, c.ID.Started)
	<-c.Ended()
}

func TestAnIDNamesOneProcess(t *testing.T) {
	self, err := Identify(os.Getpid())
	require.NoError(t, err)
	require.True(t, self.Alive())
	require.False(t, ID{PID: self.PID, Started: self.Started + "0"}.Alive(), "the same process id with another start")
	require.False(t, ID{PID: self.PID}.Alive(), "a process id alone")
	require.False(t, ID{}.Alive())
	require.NoError(t, ID{PID: self.PID, Started: "another"}.Kill(), "and this process is still here")
}

func TestAChildCanBeStoppedAndKilled(t *testing.T) {
	s := NewStarter()
	defer s.Close()
	c, err := s.Start(exec.Command("sleep", "600"))
	require.NoError(t, err)
	require.True(t, c.Running())
	require.True(t, c.ID.Alive())
	require.NoError(t, c.Signal(syscall.SIGSTOP))
	require.NoError(t, c.Kill(), "a stopped process dies as well")
	require.False(t, c.Running())
	require.False(t, c.ID.Alive())
	require.Error(t, c.Result())
	require.ErrorIs(t, c.Signal(syscall.SIGTERM), os.ErrProcessDone)
	require.NoError(t, c.Kill(), "twice is no error")
}

func TestRunReportsTheOutputOfAFailure(t *testing.T) {
	s := NewStarter()
	defer s.Close()
	out, err := s.Run(exec.Command("sh", "-c", "echo one; echo two >&2"))
	require.NoError(t, err)
	require.Equal(t, "one\ntwo\n", out)
	_, err = s.Run(exec.Command("sh", "-c", "echo why >&2; exit 3"))
	require.ErrorContains(t, err, "exit status 3: why")
	_, err = s.Run(exec.Command("/no/such/program"))
	require.ErrorIs(t, err, os.ErrNotExist)
}

func TestChildrenDieWithAParentThatIsKilled(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux kills children with their parent")
	}
	self, err := os.Executable()
	require.NoError(t, err)
	parent := exec.Command(self)
	parent.Env = append(os.Environ(), parentOf+"=1")
	out, err := parent.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, parent.Start())
	line, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err)
	var child ID
	_, err = fmt.Sscan(line, &child.PID, &child.Started)
	require.NoError(t, err)
	require.True(t, child.Alive())

	require.NoError(t, parent.Process.Kill())
	_ = parent.Wait()
	require.Eventually(t, func() bool { return !child.Alive() }, 10*time.Second, 5*time.Millisecond)
}

func TestTailKeepsTheEnd(t *testing.T) {
	require.Equal(t, "abc", Tail(" abc\n", 3))
	require.Equal(t, "… bc", Tail("abc", 2))
}
