#include "server/http/tls_files.h"

#include <spdlog/spdlog.h>

#include <system_error>
#include <utility>

namespace skein {
namespace {

namespace asio = boost::asio;
using boost::system::error_code;

constexpr int64_t kLookIntervalUs = 1'000'000;

Result<std::unique_ptr<asio::ssl::context>> LoadTlsContext(const std::string& certfile,
                                                           const std::string& keyfile) {
  auto context = std::make_unique<asio::ssl::context>(asio::ssl::context::tls_server);
  SSL_CTX_set_min_proto_version(context->native_handle(), TLS1_2_VERSION);
  error_code error;
  context->use_certificate_chain_file(certfile, error);
  if (error) {
    return Status(StatusCode::kInvalidArgument,
                  "cannot read a PEM certificate from " + certfile + ": " + error.message(),
                  "ssl-certfile");
  }
  context->use_private_key_file(keyfile, asio::ssl::context::pem, error);
  if (error || SSL_CTX_check_private_key(context->native_handle()) != 1) {
    return Status(StatusCode::kInvalidArgument,
                  "cannot read a PEM key that fits the certificate from " + keyfile +
                      (error ? ": " + error.message() : ""),
                  "ssl-keyfile");
  }
  return context;
}

}  // namespace

TlsFiles::TlsFiles(std::string certfile, std::string keyfile)
    : certfile_(std::move(certfile)), keyfile_(std::move(keyfile)) {}

Result<std::unique_ptr<TlsFiles>> TlsFiles::Load(std::string certfile, std::string keyfile) {
  std::unique_ptr<TlsFiles> files(new TlsFiles(std::move(certfile), std::move(keyfile)));
  // The times are taken before the files are read. A change in between is then noticed later.
  files->loaded_ = files->Modified();
  SKEIN_ASSIGN_OR_RETURN(files->context_, LoadTlsContext(files->certfile_, files->keyfile_));
  return files;
}

asio::ssl::context* TlsFiles::Context(int64_t now_us) {
  if (now_us - looked_us_ < kLookIntervalUs) return context_.get();
  looked_us_ = now_us;
  const Times modified = Modified();
  if (modified == loaded_) return context_.get();
  loaded_ = modified;
  auto context = LoadTlsContext(certfile_, keyfile_);
  if (context.ok()) {
    context_ = std::move(context).value();
    spdlog::info("TLS: the certificate was read again");
  } else {
    spdlog::error("TLS: the certificate before stays: {}", context.status().message());
  }
  return context_.get();
}

TlsFiles::Times TlsFiles::Modified() const {
  std::error_code missing;  // a missing file gets a time, too
  return {std::filesystem::last_write_time(certfile_, missing),
          std::filesystem::last_write_time(keyfile_, missing)};
}

}  // namespace skein
