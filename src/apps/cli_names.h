#pragma once

// The names of CLI11's types. A header that only passes their objects on needs no more, and CLI11's
// own header is much code for every source that includes it.
namespace CLI {
class App;
class Option;
}  // namespace CLI
