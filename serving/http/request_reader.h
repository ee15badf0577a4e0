// RequestReader: bytes in, requests out, with no socket in sight, so that tests and the fuzzer feed
// it byte by byte.
//
// It sits on Beast's parser by events, which leaves the fields to us: they go straight into the
// HttpRequest, without a container of Beast's in between.
//   Source  RFC 9112.
//   Thread  one.
#pragma once
#include <boost/beast/http/basic_parser.hpp>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "serving/http/http_server.h"

namespace cairn::serving {

struct ReadLimits {
  std::size_t header_max = 0, body_max = 0;
  std::string token;  // empty: none is asked for
};

// Collects what the parser meets. Errors that are ours and not the parser's are in `refusal`.
class RequestParser final : public boost::beast::http::basic_parser<true> {
 public:
  using Text = boost::beast::string_view;
  using ErrorCode = boost::beast::error_code;

  RequestParser(const ReadLimits& limits, HttpRequest& request);
  // Set once a callback has ended the reading.
  const std::optional<HttpResponse>& refusal() const { return refusal_; }
  bool http11() const { return http11_; }
  bool wants_continue() const { return wants_continue_; }
  bool is_head() const { return head_; }

 protected:
  void on_request_impl(boost::beast::http::verb verb, Text method, Text target, int version,
                       ErrorCode& error) override;
  void on_response_impl(int code, Text reason, int version, ErrorCode& error) override;
  void on_field_impl(boost::beast::http::field field, Text name, Text value,
                     ErrorCode& error) override;
  void on_header_impl(ErrorCode& error) override;
  void on_body_init_impl(const boost::optional<std::uint64_t>& length, ErrorCode& error) override;
  std::size_t on_body_impl(Text bytes, ErrorCode& error) override;
  void on_chunk_header_impl(std::uint64_t size, Text extensions, ErrorCode& error) override;
  std::size_t on_chunk_body_impl(std::uint64_t left, Text bytes, ErrorCode& error) override;
  void on_finish_impl(ErrorCode& error) override;

 private:
  void count(std::size_t bytes, ErrorCode& error);
  void refuse(unsigned status, std::string_view text, ErrorCode& error);
  void check_expectation(ErrorCode& error);
  void check_length(ErrorCode& error);

  const ReadLimits& limits_;
  HttpRequest& request_;
  std::optional<HttpResponse> refusal_;
  std::size_t header_bytes_ = 0;  // with trailers and the extensions of chunks
  int hosts_ = 0;
  bool http11_ = true, head_ = false, wants_continue_ = false, foreign_encoding_ = false;
};

class RequestReader {
 public:
  enum class State {
    kReading,   // more bytes are needed
    kContinue,  // the client waits for "100 Continue" before it sends the body: go_on()
    kComplete,  // take() the request
    kRefused,   // send the refusal(), then close
  };

  // `limits` must outlive the reader.
  explicit RequestReader(const ReadLimits& limits);

  // Reads from the front of `bytes` and returns how many of them are used up; the others must be
  // in front again in the next call. In the states other than kReading nothing is read.
  std::size_t read(std::string_view bytes);
  State state() const { return state_; }
  // Whether a byte of the present request has been read.
  bool begun() const { return begun_; }

  void go_on() { state_ = State::kReading; }
  HttpRequest take() { return std::move(request_); }
  const HttpResponse& refusal() const { return *refusal_; }
  // The method and so on as far as they were read.
  const HttpRequest& request() const { return request_; }
  bool http11() const { return parser_->http11(); }
  bool is_head() const { return parser_->is_head(); }  // which is answered without a body
  bool keep_alive() const { return state_ == State::kComplete && parser_->keep_alive(); }
  // Makes it ready for the next request.
  void next();

 private:
  bool must_wait(std::size_t bytes) const;
  void stopped(boost::beast::error_code error, std::size_t unused);
  void refuse(unsigned status, std::string_view text);

  const ReadLimits& limits_;
  HttpRequest request_;
  std::optional<RequestParser> parser_;
  std::optional<HttpResponse> refusal_;
  State state_ = State::kReading;
  bool begun_ = false, asked_ = false;
};

}  // namespace cairn::serving
