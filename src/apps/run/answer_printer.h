#pragma once

#include <cstdio>
#include <string>

namespace skein {

// Answers on standard output, as they come.

inline void PrintPiece(const std::string& piece) {
  std::fwrite(piece.data(), 1, piece.size(), stdout);
  std::fflush(stdout);
}

inline void EndAnswer() { PrintPiece("\n"); }

}  // namespace skein
