package limit

import "net/netip"

// MaxAddresses is how many addresses anything is remembered of.
const MaxAddresses = 4096

// Address is the address behind which one guesser sits: an IPv4 address however it is written, or a /64 of IPv6.
func Address(remote string) string {
	ap, err := netip.ParseAddrPort(remote)
	if err != nil {
		return remote
	}
	ip := ap.Addr().Unmap().WithZone("")
	if ip.Is6() {
		return netip.PrefixFrom(ip, 64).Masked().String()
	}
	return ip.String()
}

// Loopback says whether such an address is one of this machine's own.
func Loopback(from string) bool {
	if p, err := netip.ParsePrefix(from); err == nil {
		return p.Contains(netip.IPv6Loopback()) // nobody else is in that /64
	}
	ip, err := netip.ParseAddr(from)
	return err == nil && ip.IsLoopback()
}
