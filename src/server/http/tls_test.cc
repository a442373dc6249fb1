#include <gtest/gtest.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <unistd.h>

#include <boost/asio/buffer.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <boost/asio/write.hpp>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>

#include "server/http/tls_files.h"
#include "testing/fake_server.h"
#include "testing/read_answer.h"

namespace skein::testing {
namespace {

namespace asio = boost::asio;
namespace http = boost::beast::http;

// A key and a self-signed certificate for "localhost", as PEM files in their own folder.
class Certificate {
 public:
  Certificate() {
    dir_ = ::testing::TempDir() + "skein_tls_" + std::to_string(getpid());
    std::filesystem::create_directories(dir_);
    Make();
  }
  ~Certificate() { std::filesystem::remove_all(dir_); }

  // Makes a new key and certificate in place of the old ones.
  void Make() {
    EVP_PKEY* key = EVP_EC_gen("P-256");
    X509* x509 = X509_new();
    ASN1_INTEGER_set(X509_get_serialNumber(x509), 1);
    X509_gmtime_adj(X509_getm_notBefore(x509), -60);
    X509_gmtime_adj(X509_getm_notAfter(x509), 3600);
    X509_set_pubkey(x509, key);
    X509_NAME* name = X509_get_subject_name(x509);
    X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC,
                               reinterpret_cast<const unsigned char*>("localhost"), -1, -1, 0);
    X509_set_issuer_name(x509, name);
    X509_sign(x509, key, EVP_sha256());
    std::FILE* file = std::fopen(certfile().c_str(), "w");
    PEM_write_X509(file, x509);
    std::fclose(file);
    file = std::fopen(keyfile().c_str(), "w");
    PEM_write_PrivateKey(file, key, nullptr, nullptr, 0, nullptr, nullptr);
    std::fclose(file);
    X509_free(x509);
    EVP_PKEY_free(key);
    SetTime(certfile());
    SetTime(keyfile());
  }
  void Spoil() {
    std::ofstream(certfile()) << "no certificate";
    SetTime(certfile());
  }

  std::string certfile() const { return dir_ + "/cert.pem"; }
  std::string keyfile() const { return dir_ + "/key.pem"; }

 private:
  // Sets a different time at each change: the clock of the file system is coarse.
  void SetTime(const std::string& path) {
    time_ += std::chrono::seconds(1);
    std::filesystem::last_write_time(path, time_);
  }

  std::string dir_;
  std::filesystem::file_time_type time_ = std::filesystem::file_time_type::clock::now();
};

TEST(TlsFiles, AreReadAgainWhenTheyChange) {
  constexpr int64_t kSecondUs = 1'000'000;
  Certificate certificate;
  auto files = TlsFiles::Load(certificate.certfile(), certificate.keyfile());
  ASSERT_TRUE(files.ok());
  const auto certificate_at = [&](int64_t now_us) {
    const X509* x509 = SSL_CTX_get0_certificate(files.value()->Context(now_us)->native_handle());
    return std::string(reinterpret_cast<const char*>(X509_get0_pubkey_bitstr(x509)->data), 65);
  };
  const std::string first = certificate_at(10 * kSecondUs);
  certificate.Make();
  // The files were checked just before.
  EXPECT_EQ(certificate_at(10 * kSecondUs + kSecondUs / 2), first);
  const std::string second = certificate_at(12 * kSecondUs);
  EXPECT_NE(second, first);
  certificate.Spoil();
  EXPECT_EQ(certificate_at(14 * kSecondUs), second);
  certificate.Make();
  EXPECT_NE(certificate_at(16 * kSecondUs), second);
}

class TlsTest : public ServerTest {
 protected:
  using TlsStream = asio::ssl::stream<asio::ip::tcp::socket>;

  void StartTls() {
    ServerConfig config;
    config.ssl_certfile = certificate_.certfile();
    config.ssl_keyfile = certificate_.keyfile();
    Start(config);
  }

  // Makes a connected client that trusts only this certificate.
  std::unique_ptr<TlsStream> Connect() {
    boost::system::error_code error;
    client_context_.set_verify_mode(asio::ssl::verify_peer);
    client_context_.load_verify_file(certificate_.certfile(), error);
    EXPECT_FALSE(error);
    auto stream = std::make_unique<TlsStream>(io_, client_context_);
    stream->next_layer().connect({asio::ip::address_v4::loopback(), port_}, error);
    EXPECT_FALSE(error);
    stream->handshake(asio::ssl::stream_base::client, error);
    EXPECT_FALSE(error) << error.message();
    return stream;
  }

  static void Write(TlsStream* stream, const std::string& body) {
    boost::system::error_code error;
    asio::write(
        *stream,
        asio::buffer("POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: " +
                     std::to_string(body.size()) + "\r\n\r\n" + body),
        error);
    EXPECT_FALSE(error);
  }

  Certificate certificate_;
  asio::io_context io_;
  asio::ssl::context client_context_{asio::ssl::context::tls_client};
};

TEST_F(TlsTest, WholeAndStreamedAnswersOnOneConnection) {
  StartTls();
  auto stream = Connect();
  boost::beast::flat_buffer buffer;
  for (const char* streamed : {"false", "true", "false"}) {
    Write(stream.get(), std::string(R"({"prompt": "Hi", "stream": )") + streamed + "}");
    const Answer answer = ReadAnswer(*stream, &buffer);
    EXPECT_EQ(answer.status, 200);
    if (streamed[0] == 't') {
      EXPECT_EQ(answer.Events().back(), "[DONE]");
    } else {
      EXPECT_EQ(answer.json()["choices"][0]["text"], "Hello, world");
    }
  }
}

TEST_F(TlsTest, ClientThatLeavesIsCancelled) {
  StartTls();
  engine_.set_paused(true);
  auto stream = Connect();
  Write(stream.get(), R"({"prompt": "Hi"})");
  ASSERT_TRUE(Eventually([&] { return engine_.num_running() == 1; }));
  boost::system::error_code ignored;
  stream->next_layer().close(ignored);
  EXPECT_TRUE(Eventually([&] { return engine_.num_running() == 0; }));
}

TEST_F(TlsTest, PlainClientsAndWrongFilesAreRefused) {
  StartTls();
  Client plain(port_);
  plain.SendRequest("GET", "/health", "");
  EXPECT_EQ(plain.Read().status, 0);
  ServerConfig swapped;
  swapped.port = 0;
  swapped.ssl_certfile = certificate_.keyfile();
  swapped.ssl_keyfile = certificate_.certfile();
  EXPECT_EQ(HttpServer(swapped).Start().status().param(), "ssl-certfile");
}

}  // namespace
}  // namespace skein::testing
