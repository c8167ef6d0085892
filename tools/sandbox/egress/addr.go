package egress

import (
	"net"
	"net/netip"
)

// special are the parts of the address space that lead to this machine, to its neighbours, or nowhere (IANA special
// purpose registries, RFC 6890), and those that carry an IPv4 address in an IPv6 one. What IPv6 calls global is
// 2000::/3; nothing else is let through at all.
func special() []netip.Prefix {
	var list []netip.Prefix
	for _, s := range []string{
		"0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12", "192.0.0.0/24", "192.0.2.0/24",
		"192.31.196.0/24", "192.52.193.0/24", "192.88.99.0/24", "192.168.0.0/16", "192.175.48.0/24", "198.18.0.0/15", "198.51.100.0/24",
		"203.0.113.0/24", "224.0.0.0/4", "240.0.0.0/4",
		"168.63.129.16/32",           // a cloud's wire server, reached from inside only
		"2001::/23",                  // protocol assignments, Teredo among them
		"2001:db8::/32", "2002::/16", // documentation; 6to4
		"2620:4f:8000::/48", "3fff::/20",
	} {
		list = append(list, netip.MustParsePrefix(s))
	}
	return list
}

// judgeAddr says why an address may not be dialled; empty: it may. own are those of this machine.
func (p *Proxy) judgeAddr(a netip.Addr, own map[netip.Addr]bool) string {
	if a.Zone() != "" && !p.off.has(checkAddress) {
		return ReasonAddress
	}
	a = a.Unmap()
	if own[a] && !p.off.has(checkOwn) {
		return ReasonOwn
	}
	if p.off.has(checkAddress) {
		return ""
	}
	if !a.IsGlobalUnicast() || a.IsPrivate() || a.Is6() && (!global6().Contains(a) || isatap(a)) {
		return ReasonAddress
	}
	for _, s := range p.special {
		if s.Contains(a) {
			return ReasonAddress
		}
	}
	return ""
}

func global6() netip.Prefix { return netip.PrefixFrom(netip.AddrFrom16([16]byte{0x20}), 3) }

// isatap tells addresses whose interface part holds an IPv4 address (RFC 5214).
func isatap(a netip.Addr) bool {
	b := a.As16()
	return b[8]&^2 == 0 && b[9] == 0 && b[10] == 0x5e && b[11] == 0xfe
}

// ownAddresses are asked for again: a machine's addresses change.
func (p *Proxy) ownAddresses() (map[netip.Addr]bool, error) {
	addrs, err := p.own()
	if err != nil {
		return nil, err
	}
	own := make(map[netip.Addr]bool, len(addrs))
	for _, a := range addrs {
		if n, ok := a.(*net.IPNet); ok {
			if ip, ok := netip.AddrFromSlice(n.IP); ok {
				own[ip.Unmap()] = true
			}
		}
	}
	return own, nil
}
