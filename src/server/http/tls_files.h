#pragma once

#include <boost/asio/ssl/context.hpp>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>

#include "base/result.h"

namespace skein {

// A certificate and its key in PEM files. The files are read again when one of them changes, so
// that new connections use a renewed certificate without a restart. One thread at a time.
class TlsFiles {
 public:
  // Both files must hold PEM; the certificate comes first in its chain. Errors name the option.
  static Result<std::unique_ptr<TlsFiles>> Load(std::string certfile, std::string keyfile);

  // The server context (TLS 1.2 or later) for a new connection at `now_us` of a steady clock. The
  // files are checked at most once a second. If changed files do not match each other, this is
  // logged and the previous context stays. The returned object lives until the next call that loads
  // files; streams made with it live on.
  boost::asio::ssl::context* Context(int64_t now_us);

 private:
  using Time = std::filesystem::file_time_type;
  struct Times {
    Time cert;
    Time key;
    bool operator==(const Times&) const = default;
  };

  TlsFiles(std::string certfile, std::string keyfile);
  Times Modified() const;

  const std::string certfile_;
  const std::string keyfile_;
  std::unique_ptr<boost::asio::ssl::context> context_;
  Times loaded_;  // times of the files when they were last read, even if reading failed
  int64_t looked_us_ = 0;
};

}  // namespace skein
