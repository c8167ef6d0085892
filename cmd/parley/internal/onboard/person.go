// Who sets it up.

package onboard

import (
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"strings"
	"time"

	"parley/cmd/parley/internal/cli"
)

// person is the owner that the configuration names; without an id it names none.
type person struct{ id, name, zone string }

// choosePerson asks for a name and a time zone, or takes them from flags. Without a name nobody is named, and the gateway knows the
// owner of this machine as local.
func (o *onboard) choosePerson() (err error) {
	p := person{name: strings.TrimSpace(o.personName), zone: o.personZone}
	if p.name == "" && o.had.owner() {
		return nil
	}
	if o.ask != nil && p.name == "" {
		fmt.Fprintln(o.Out)
		if p.name, err = o.ask.Text("Your name, as agents shall call you", userName()); err != nil {
			return err
		}
	}
	if p.name == "" {
		return nil
	}
	p.id = slug(p.name)
	for {
		if p.zone == "" {
			p.zone = systemZone()
			if o.ask != nil {
				if p.zone, err = o.ask.Text("Your time zone, such as Europe/Berlin", p.zone); err != nil {
					return err
				}
			}
		}
		if zoneExists(p.zone) {
			o.person = p
			return nil
		}
		if o.ask == nil || o.personZone != "" {
			return cli.Misuse(fmt.Errorf("there is no time zone %q; zones are named as in Europe/Berlin", p.zone))
		}
		o.say("", fmt.Sprintf("There is no time zone %q. They are named as in Europe/Berlin or America/New_York.", cli.Visible(p.zone)))
		p.zone = ""
	}
}

// zoneExists asks the tz database, which this program has with it.
func zoneExists(name string) bool {
	_, err := time.LoadLocation(name)
	return err == nil && name != "" && name != "Local"
}

// systemZone is the time zone of this machine; UTC when that cannot be told.
func systemZone() string {
	var names []string
	names = append(names, strings.TrimPrefix(os.Getenv("TZ"), ":"))
	if text, err := os.ReadFile("/etc/timezone"); err == nil {
		names = append(names, strings.TrimSpace(string(text)))
	}
	if to, err := filepath.EvalSymlinks("/etc/localtime"); err == nil {
		_, name, _ := strings.Cut(to, "zoneinfo/")
		names = append(names, name)
	}
	for _, name := range names {
		if zoneExists(name) {
			return name
		}
	}
	return "UTC"
}

// userName is how the system calls who sits here; empty for root, which is nobody's name.
func userName() string {
	u, err := user.Current()
	if err != nil || u.Uid == "0" {
		return ""
	}
	if full, _, _ := strings.Cut(u.Name, ","); strings.TrimSpace(full) != "" {
		return strings.TrimSpace(full)
	}
	return u.Username
}

// slug is the id of a person by that name.
func slug(name string) string {
	first, _, _ := strings.Cut(strings.ToLower(name), " ")
	id := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			return r
		}
		return -1
	}, first)
	if id == "" || id == "local" {
		return "owner"
	}
	return id
}
