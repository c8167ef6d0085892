package configs_test

import (
	"testing"

	"parley/configs"
)

// BenchmarkParse is the configuration's share of the start.
func BenchmarkParse(b *testing.B) {
	o := configs.LoadOptions{Env: env("OPENAI_API_KEY=k", "TELEGRAM_TOKEN=t"), Sections: sections()}
	for b.Loop() {
		if _, err := configs.Parse(configs.Example, o); err != nil {
			b.Fatal(err)
		}
	}
}
