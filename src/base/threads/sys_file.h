#pragma once

#include <fstream>
#include <string>

namespace skein {

// The first line of a file by which Linux describes the machine. Empty if it cannot be read.
inline std::string FirstLineOf(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

}  // namespace skein
