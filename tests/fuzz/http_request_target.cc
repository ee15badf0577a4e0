#include <algorithm>
#include <string>

#include "core/base/error.h"
#include "serving/http/request_reader.h"
#include "tests/fuzz/refusal.h"

namespace cairn::fuzz {
namespace {

using serving::RequestReader;
using State = RequestReader::State;

struct Requests {
  std::string all;
  bool waits = false;     // the end of the last one has not come
  bool too_long = false;  // a header was refused for its length
};

// The requests in `bytes`, which come in pieces of at most `piece` bytes.
Requests read(std::string_view bytes, std::size_t piece) {
  const serving::ReadLimits limits{.header_max = 1024, .body_max = 2048, .token = ""};
  RequestReader reader(limits);
  Requests out;
  for (std::string front; !bytes.empty();) {
    front += bytes.substr(0, piece);
    bytes.remove_prefix(std::min(piece, bytes.size()));
    for (bool more = true; more;) {
      front.erase(0, reader.read(front));
      CAIRN_CHECK(reader.request().body.size() <= limits.body_max);
      more = reader.state() != State::kReading;
      if (reader.state() == State::kContinue) {
        reader.go_on();
      } else if (reader.state() == State::kRefused) {
        const auto& refusal = reader.refusal();
        out.too_long = refusal.status == 431;
        out.all += std::to_string(refusal.status) + refusal.body;
        return out;
      } else if (reader.state() == State::kComplete) {
        const bool keep_alive = reader.keep_alive();
        const serving::HttpRequest request = reader.take();
        out.all += request.method + ' ' + request.target + ' ' + (keep_alive ? "keep" : "close");
        for (const auto& [name, value] : request.headers) out.all += '\n' + name + ':' + value;
        out.all += "\n\n" + request.body + '\n';
        reader.next();
      }
    }
    CAIRN_CHECK(front.size() <= limits.header_max, "what is kept back has a bound");
  }
  out.waits = reader.begun();
  return out;
}

}  // namespace

// However the bytes are split, the same requests come out. Only a header whose end has not come may
// be waited for although it is wrong already, and spaces around values count towards the limit on
// headers or not.
void http_request(Bytes input) {
  const std::size_t piece = 1 + take_choice(input) % 64;
  const Requests pieces = read(text(input), piece), whole = read(text(input), input.size());
  if (pieces.too_long || whole.too_long) return;
  if (pieces.waits) {
    CAIRN_CHECK(whole.all.substr(0, pieces.all.size()) == pieces.all);
  } else {
    CAIRN_CHECK(whole.all == pieces.all && !whole.waits);
  }
}

}  // namespace cairn::fuzz
