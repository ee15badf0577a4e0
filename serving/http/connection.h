// Connection: reads requests from a stream one after another, gives them to the handler and writes
// the answers.
//
// At any moment it is in one phase, and waits for at most one thing: bytes to read, room to write,
// or the handler. run() goes from request to request for as long as their bytes are there already
// and the handler answers at once, without recursion, however many are pipelined.
//
// A connection with an answer to a request that was not read to its end lingers: it sends its own
// end, then reads and drops what the client still sends. Without that, the kernel would answer
// those bytes with a reset, which makes clients lose the answer.
//
// A connection rests if its answer says so (HttpResponse::rest): its next request stays in the
// kernel's buffers meanwhile.
//   Thread  the loop's, except for send().
#pragma once
#include <boost/asio/steady_timer.hpp>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "core/base/clock.h"
#include "serving/http/http_loop.h"
#include "serving/http/plain_stream.h"

namespace cairn::serving {

// The record of a request for the access log; made only if there is a log.
struct AccessRecord {
  std::string remote, method, target;
  std::size_t bytes_in = 0;
  TimePoint begun;
};

template <typename Stream>
class Connection final : public HttpConnection,
                         public std::enable_shared_from_this<Connection<Stream>> {
 public:
  // `remote` is for the access log alone.
  Connection(std::shared_ptr<HttpLoop> loop, Stream stream, std::string remote);
  void start() { wait_readable(); }

  void send(HttpResponse response) override;
  void deliver(HttpResponse response) override;
  void tick() override;
  void end() override;
  void close() override;

 private:
  enum class Phase : std::uint8_t { kReading, kHandling, kWriting, kResting, kLingering, kClosed };
  enum class Then : std::uint8_t { kNextRequest, kBody, kClose, kLinger };
  using ErrorCode = typename Stream::ErrorCode;

  template <typename Action>
  void guarded(Action action);
  void wait_readable();
  void on_readable();
  void run(std::string_view bytes);
  void keep(std::string_view bytes);
  bool read_request(std::string_view& bytes);
  void handle();
  void refuse(const HttpResponse& response);
  void answer(HttpResponse response, Then then);
  void write();
  void written();
  void rest();
  void wake();
  void linger();
  void drop_bytes();
  bool account();
  bool is_late() const;
  bool is_idle() const { return phase_ == Phase::kReading && !reader_.begun() && kept_.empty(); }
  void cut_off();
  void log_request();
  void log_answer();

  const std::shared_ptr<HttpLoop> loop_;  // before the stream, which is destroyed first
  Stream stream_;
  RequestReader reader_;
  std::string kept_;         // bytes that came but could not be read yet
  std::string head_, body_;  // the answer
  std::size_t sent_ = 0;     // bytes of head_ and body_ together
  std::size_t body_bytes_ = 0;
  std::optional<HttpResponse> ready_;                // sent by the handler before it has returned
  std::unique_ptr<AccessRecord> record_;             // null: there is no log
  std::unique_ptr<boost::asio::steady_timer> rest_;  // null: it does not rest
  Duration rest_after_{};                            // that the answer asks for
  std::size_t lingered_ = 0;                         // bytes
  std::size_t held_ = 0;                             // bytes, as the loop counts them
  unsigned status_ = 0;
  std::uint32_t moved_;      // the tick in which a byte moved
  std::uint32_t began_ = 0;  // that in which the request, or answer, began to
  Phase phase_ = Phase::kReading;
  Then then_ = Then::kNextRequest;
  bool waiting_ = false;  // for bytes to read
  bool in_handler_ = false, ending_ = false;
};

extern template class Connection<PlainStream>;

}  // namespace cairn::serving
