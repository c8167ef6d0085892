package discordtest

import "strconv"

func (s *Server) open() []*conn {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []*conn
	for c := range s.gate.conns {
		all = append(all, c)
	}
	return all
}

// DropAll cuts every gateway connection without a word; sessions can be resumed unless the fault Lost stands.
func (s *Server) DropAll() {
	for _, c := range s.open() {
		c.drop()
	}
}

// CloseAll closes every gateway connection with a code such as 4000.
func (s *Server) CloseAll(code int) {
	for _, c := range s.open() {
		c.close(code, "closed by the test "+strconv.Itoa(code))
	}
}

// Reconnect asks every client to reconnect and resume: op 7.
func (s *Server) Reconnect() {
	for _, c := range s.open() {
		c.send(obj{"op": opReconnect, "d": nil})
	}
}

// Invalidate ends every session: op 9. resumable says that the session itself is still there.
func (s *Server) Invalidate(resumable bool) {
	for _, c := range s.open() {
		s.mu.Lock()
		if c.session != nil && !resumable {
			delete(s.gate.sessions, c.session.id)
			c.session = nil
		}
		s.mu.Unlock()
		c.send(obj{"op": opInvalid, "d": resumable})
	}
}

// Beat asks every client for a heartbeat at once: op 1.
func (s *Server) Beat() {
	for _, c := range s.open() {
		c.send(obj{"op": opHeartbeat, "d": nil})
	}
}

// SendGuilds gives all sessions their servers, which NoGuilds has kept back.
func (s *Server) SendGuilds() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, ses := range s.gate.sessions {
		for _, g := range s.sortedGuilds() {
			ses.add("GUILD_CREATE", s.guildJSON(g, true))
		}
		if ses.conn != nil {
			ses.conn.poke()
		}
	}
}

// Expire lets go of every session that has no connection, as Discord does after a while.
func (s *Server) Expire() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for id, ses := range s.gate.sessions {
		if ses.conn == nil {
			delete(s.gate.sessions, id)
		}
	}
	s.watch.Changed()
}
