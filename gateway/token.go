package gateway

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"parley/configs"
)

// tokenFile holds the gateway's token when the configuration has none.
const tokenFile = "token"

// Token is the API's bearer token that a configuration means: its own, or the one in the data directory. It is empty
// while none was made.
func Token(c *configs.Config) (string, error) {
	if t := c.Gateway.Token.Reveal(); t != "" {
		return t, nil
	}
	data, err := os.ReadFile(filepath.Join(c.DataDir, tokenFile))
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	return strings.TrimSpace(string(data)), err
}

// makeToken writes a token of 130 bits, readable by its owner only, if there is none. An empty file is replaced.
func makeToken(c *configs.Config) error {
	have, err := Token(c)
	if err != nil || have != "" {
		return err
	}
	name := filepath.Join(c.DataDir, tokenFile)
	fresh := filepath.Join(c.DataDir, tokenFile+".new")
	f, err := os.OpenFile(fresh, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(f, rand.Text())
	if err = errors.Join(err, f.Chmod(0o600), f.Sync(), f.Close()); err != nil {
		return err
	}
	return os.Rename(fresh, name)
}

// token is the one in force now: a changed configuration or file counts from the next request on.
func (g *Gateway) token() string {
	t, err := Token(g.config())
	if err != nil {
		g.log.Error("token cannot be read", "err", err)
	}
	return t
}
