package channels

import "fmt"

// FactoryOf is the factory of a network whose section of the configuration is an O. open does no IO; its errors name every
// bad option.
func FactoryOf[O any, C Channel](network Network, open func(name string, o O, d Deps) (C, error)) Factory {
	return Factory{
		Network: network,
		Options: func() any { return new(O) },
		New: func(name string, options any, d Deps) (Channel, error) {
			o, ok := options.(*O)
			if !ok {
				return nil, fmt.Errorf("channel %s: options are %T, not %T", name, options, o)
			}
			c, err := open(name, *o, d)
			if err != nil {
				return nil, err // and no channel: a nil C would be one
			}
			return c, nil
		},
	}
}
