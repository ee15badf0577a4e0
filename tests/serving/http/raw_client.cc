#include "tests/serving/http/raw_client.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <chrono>
#include <stdexcept>
#include <thread>
#include <utility>

namespace cairn::serving {
namespace {

constexpr int kSecondsMax = 60;  // for any one call; a test that hangs must fail

void check(bool ok, const char* call) {
  if (!ok) throw std::runtime_error(std::string("the test's client: ") + call + " failed");
}

std::map<std::string, std::string> headers_of(std::string_view head) {
  std::map<std::string, std::string> headers;
  for (std::size_t line = head.find("\r\n"); line != std::string_view::npos;) {
    const std::size_t begin = line + 2, end = head.find("\r\n", begin);
    const std::string_view text = head.substr(begin, end - begin);
    const std::size_t colon = text.find(": ");
    if (colon != std::string_view::npos) {
      std::string name(text.substr(0, colon));
      std::transform(name.begin(), name.end(), name.begin(),
                     [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
      headers[name] = text.substr(colon + 2);
    }
    line = end;
  }
  return headers;
}

}  // namespace

RawClient::RawClient(std::uint16_t port, int receive_buffer)
    : socket_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  check(socket_ >= 0, "socket");
  const timeval bound{kSecondsMax, 0};
  setsockopt(socket_, SOL_SOCKET, SO_RCVTIMEO, &bound, sizeof(bound));
  setsockopt(socket_, SOL_SOCKET, SO_SNDTIMEO, &bound, sizeof(bound));
  if (receive_buffer > 0)
    setsockopt(socket_, SOL_SOCKET, SO_RCVBUF, &receive_buffer, sizeof(receive_buffer));
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(port);
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  check(connect(socket_, reinterpret_cast<const sockaddr*>(&to), sizeof(to)) == 0, "connect");
}

RawClient::RawClient(RawClient&& other) noexcept
    : socket_(std::exchange(other.socket_, -1)), buffer_(std::move(other.buffer_)) {}

RawClient::~RawClient() {
  if (socket_ >= 0) ::close(socket_);
}

bool RawClient::send(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t sent = ::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent < 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(sent));
  }
  return true;
}

void RawClient::end() { shutdown(socket_, SHUT_WR); }

void RawClient::reset() {
  const linger at_once{1, 0};
  setsockopt(socket_, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
  ::close(std::exchange(socket_, -1));
}

bool RawClient::fill() {
  char bytes[64 << 10];
  const ssize_t got = recv(socket_, bytes, sizeof(bytes), 0);
  check(got >= 0 || errno == ECONNRESET, "recv (or it took too long)");
  if (got <= 0) return false;
  buffer_.append(bytes, static_cast<std::size_t>(got));
  return true;
}

RawResponse RawClient::receive(bool head) {
  std::size_t end;
  while ((end = buffer_.find("\r\n\r\n")) == std::string::npos) {
    if (!fill()) return {};
  }
  RawResponse response;
  response.status = std::stoi(buffer_.substr(9, 3));
  response.headers = headers_of(std::string_view(buffer_).substr(0, end));
  buffer_.erase(0, end + 4);
  const auto length = response.headers.find("content-length");
  if (head || length == response.headers.end()) return response;
  const std::size_t wanted = std::stoul(length->second);
  response.body = receive_bytes(wanted);
  return response.body.size() == wanted ? response : RawResponse{};
}

std::string RawClient::receive_bytes(std::size_t bytes) {
  while (buffer_.size() < bytes && fill()) {
  }
  std::string front = buffer_.substr(0, bytes);
  buffer_.erase(0, front.size());
  return front;
}

std::string RawClient::receive_to_end() {
  while (fill()) {
  }
  return std::exchange(buffer_, {});
}

std::string get(std::string_view target, std::string_view headers) {
  return "GET " + std::string(target) + " HTTP/1.1\r\nHost: test\r\n" + std::string(headers) +
         "\r\n";
}

std::string post(std::string_view target, std::string_view body, std::string_view headers) {
  return "POST " + std::string(target) +
         " HTTP/1.1\r\nHost: test\r\nContent-Length: " + std::to_string(body.size()) + "\r\n" +
         std::string(headers) + "\r\n" + std::string(body);
}

bool eventually(const std::function<bool()>& condition) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(kSecondsMax);
  while (!condition()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::yield();
  }
  return true;
}

void echo(HttpRequest request, HttpReply reply) {
  reply.send({.status = 200,
              .content_type = "text/plain",
              .body = request.method + " " + request.target + " " + request.body});
}

}  // namespace cairn::serving
