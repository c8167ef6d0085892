package llm

import "testing"

func TestSightIsKnownByTheName(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]Sight{
		"gpt-4o": SightUnknown, "gpt-5": SightUnknown, "claude-sonnet-4-5": SightUnknown, "gemini-2.5-flash": SightUnknown, "test-1": SightUnknown,
		"gemma3:4b": SightUnknown, "gemma-3-27b-it": SightUnknown, "llama-4-scout": SightUnknown, "llama4": SightUnknown, "mistral-small-latest": SightUnknown,
		"qwen3.5": SightUnknown, "kimi-k2.5": SightUnknown, "grok-4": SightUnknown, "gpt-4-turbo": SightUnknown, "deepseek-v4": SightUnknown,
		"gpt-3.5-turbo": Blind, "gpt-4": Blind, "gpt-4-0613": Blind, "o3-mini": Blind, "gpt-oss:20b": Blind, "deepseek-chat": Blind, "deepseek/deepseek-r1": Blind,
		"llama3.1": Blind, "meta-llama/Llama-3.3-70B-Instruct": Blind, "llama3.2:3b": Blind, "mistral": Blind, "mistral:7b": Blind, "gemma2:9b": Blind,
		"gemma-2-9b-it": Blind, "qwen2.5-coder:7b": Blind, "qwen3:8b": Blind, "glm-4.6": Blind, "kimi-k2-instruct": Blind, "phi4": Blind,
		"llama3.2-vision:11b": Sees, "qwen2.5vl:7b": Sees, "Qwen/Qwen3-VL-8B": Sees, "qwen2.5-omni": Sees, "llava:13b": Sees, "pixtral-12b": Sees,
		"glm-4.5v": Sees, "deepseek-ocr": Sees, "phi-4-multimodal-instruct": Sees, "minicpm-v": Sees,
	} {
		if got := SightOf(name); got != want {
			t.Errorf("%s: %d, want %d", name, got, want)
		}
	}
}
