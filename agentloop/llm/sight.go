package llm

import (
	"strings"

	"parley/workspace/lazy"
)

// Sight says whether a model takes pictures and PDFs.
type Sight int

const (
	SightUnknown Sight = iota // show them, and learn from a refusal
	Sees
	Blind // only tell of them
)

// Names of models that take text only, although the server may swallow a picture without a word, and of their relatives
// that do see. A name that is in neither is found out about.
var (
	seeingNames = lazy.Regexp(`vision|visual|(^|-|[0-9])vl(-|:|$)|llava|pixtral|omni|multimodal|minicpm-v|moondream|internvl|janus|-ocr|[0-9]v(-|:|$)`)
	blindNames  = lazy.Regexp(`^gpt-3\.5|^gpt-4(-0\d+)?$|^o1-mini|^o3-mini|^gpt-oss` +
		`|^deepseek-(chat|reasoner|coder|r1|v[123])|^codellama|^llama(:|$)|^llama-?[23](\.[123])?(:|-|$)|^tinyllama` +
		`|^codestral|^devstral|^mixtral|^mistral-(7b|nemo)|^mistral(:|$)|^phi-?[1-4](\.5)?(:|-|$)|^gemma-?[12]?(:|$|-\d+b)` +
		`|^qwen-?(1\.5|2|2\.5|3)?(:|-|$)|^qwq|^glm-4(\.[56])?(-|:|$)|^kimi-k2(-|:|$)|^command-r|^granite-?[123]|^smollm`)
)

// SightOf judges by the provider's name for a model alone. Most names say nothing.
func SightOf(model string) Sight {
	name := strings.ToLower(model)
	if i := strings.LastIndexByte(name, '/'); i >= 0 {
		name = name[i+1:]
	}
	switch {
	case seeingNames().MatchString(name):
		return Sees
	case blindNames().MatchString(name):
		return Blind
	}
	return SightUnknown
}
