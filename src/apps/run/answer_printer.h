#pragma once

#include <cstdio>
#include <string>

namespace skein {

// Prints answers on standard output while they arrive.

inline void PrintPiece(const std::string& piece) {
  std::fwrite(piece.data(), 1, piece.size(), stdout);
  std::fflush(stdout);
}

inline void EndAnswer() { PrintPiece("\n"); }

}  // namespace skein
