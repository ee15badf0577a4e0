#include "serving/http/request_reader.h"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

namespace cairn::serving {
namespace {

using State = RequestReader::State;

const ReadLimits kLimits{.header_max = 1024, .body_max = 4096, .token = ""};

// Feeds `bytes` in pieces of the sizes that `piece` gives; what is not used up comes again in
// front. Returns the requests as text, and how the last one ended.
template <typename Piece>
std::string read_all(const ReadLimits& limits, std::string_view bytes, Piece piece) {
  RequestReader reader(limits);
  std::string out, front;
  while (!bytes.empty()) {
    const std::size_t size = std::min<std::size_t>(piece(), bytes.size());
    front += bytes.substr(0, size);
    bytes.remove_prefix(size);
    for (;;) {
      front.erase(0, reader.read(front));
      if (reader.state() == State::kRefused)
        return out + std::to_string(reader.refusal().status) + reader.refusal().body;
      if (reader.state() == State::kReading) break;
      if (reader.state() == State::kContinue) {
        reader.go_on();
        continue;
      }
      out += reader.keep_alive() ? "keep " : "close ";
      const HttpRequest request = reader.take();
      out += request.method + ' ' + request.target;
      for (const auto& [name, value] : request.headers) out += '|' + name + '=' + value;
      out += '|' + request.body + '\n';
      reader.next();
    }
  }
  return out + (reader.begun() ? "begun" : "");
}

std::string read_whole(std::string_view bytes, const ReadLimits& limits = kLimits) {
  return read_all(limits, bytes, [&] { return bytes.size(); });
}

const std::string kPost =
    "POST /v1/models/m:predict?raw HTTP/1.1\r\nHost: a\r\nContent-Type: text/csv\r\n"
    "Content-Length: 11\r\n\r\n1,2,3\n4,5,6";
const std::string kChunked =
    "POST /c HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
    "3;x=y\r\nabc\r\n10\r\n0123456789abcdef\r\n0\r\nTrailer: t\r\n\r\n";
const std::string kEmptyChunked =
    "POST /e HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n";
const std::string kGet = "GET / HTTP/1.1\r\nHOST:  a \r\nConnection: close\r\n\r\n";

TEST(RequestReader, GivesTheRequestWithLowerCaseNamesAndTrimmedValues) {
  EXPECT_EQ(read_whole(kPost),
            "keep POST /v1/models/m:predict?raw|host=a|content-type=text/csv|content-length=11|"
            "1,2,3\n4,5,6\n");
  EXPECT_EQ(read_whole(kGet), "close GET /|host=a|connection=close|\n");
}

TEST(RequestReader, JoinsChunksAndDropsTheirExtensionsAndTrailers) {
  EXPECT_EQ(read_whole(kChunked),
            "keep POST /c|host=a|transfer-encoding=chunked|abc0123456789abcdef\n");
}

TEST(RequestReader, ReadsTheSameWhereverTheBytesAreSplit) {
  const std::string all = kPost + kEmptyChunked + kChunked + "\r\n" + kGet;
  const std::string whole = read_whole(all);
  for (std::size_t at = 1; at < all.size(); ++at) {
    bool first = true;
    EXPECT_EQ(read_all(kLimits, all, [&] { return std::exchange(first, false) ? at : all.size(); }),
              whole)
        << "split at " << at;
  }
  EXPECT_EQ(read_all(kLimits, all, [] { return 1; }), whole);
}

TEST(RequestReader, AsksForTheBodyOnceIfTheClientWaits) {
  RequestReader reader(kLimits);
  const std::string head =
      "POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-Continue\r\nContent-Length: 2\r\n\r\n";
  EXPECT_EQ(reader.read(head), head.size());
  EXPECT_EQ(reader.state(), State::kContinue);
  reader.go_on();
  EXPECT_EQ(reader.read("x"), 1u);
  EXPECT_EQ(reader.state(), State::kReading);
  EXPECT_EQ(reader.read("y"), 1u);
  EXPECT_EQ(reader.state(), State::kComplete);
  EXPECT_EQ(reader.take().body, "xy");
}

TEST(RequestReader, DoesNotAskForABodyThatHasBegun) {
  RequestReader reader(kLimits);
  reader.read("POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\nx");
  EXPECT_EQ(reader.state(), State::kReading);
  reader.read("y");
  EXPECT_EQ(reader.state(), State::kComplete);
}

struct Refused {
  const char* name;
  std::string request;
  int status;
  std::string text;  // a part of the error's sentence
};

void PrintTo(const Refused& refused, std::ostream* out) { *out << refused.name; }

class RequestReaderRefuses : public ::testing::TestWithParam<Refused> {};

TEST_P(RequestReaderRefuses, WithStatusAndCure) {
  const std::string answer = read_whole(GetParam().request);
  EXPECT_EQ(answer.substr(0, 13), std::to_string(GetParam().status) + R"({"error":")") << answer;
  EXPECT_NE(answer.find(GetParam().text), std::string::npos) << answer;
}

const std::string kHost = " HTTP/1.1\r\nHost: a\r\n";

INSTANTIATE_TEST_SUITE_P(
    All, RequestReaderRefuses,
    ::testing::Values(
        Refused{"NotHttp", "\x16\x03\x01\x02\x01\x01\r\n\r\n", 400, "not HTTP/1.1"},
        Refused{"Http2", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 400, "not HTTP/1.1"},
        Refused{"NoHost", "GET / HTTP/1.1\r\n\r\n", 400, "one Host header"},
        Refused{"TwoHosts", "GET /" + kHost + "Host: b\r\n\r\n", 400, "one Host header"},
        Refused{"BadLength", "POST /" + kHost + "Content-Length: 1x\r\n\r\n", 400,
                "Content-Length"},
        Refused{"TwoLengths", "POST /" + kHost + "Content-Length: 1\r\nContent-Length: 2\r\n\r\n",
                400, "Content-Length"},
        Refused{"LengthAndChunks",
                "POST /" + kHost + "Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n", 400,
                "ncoding"},
        Refused{"BadChunk", "POST /" + kHost + "Transfer-Encoding: chunked\r\n\r\nxyz\r\n", 400,
                "chunk"},
        Refused{"NoLength", "POST /" + kHost + "\r\n", 411, "Content-Length"},
        Refused{"NoLengthOfPut", "PUT /" + kHost + "\r\n", 411, "a PUT request"},
        Refused{"LargeBody", "POST /" + kHost + "Content-Length: 1073741824\r\n\r\n", 413,
                "1073741824 bytes, and the limit is 4096 bytes"},
        Refused{"HugeBody", "POST /" + kHost + "Content-Length: 18446744073709551615\r\n\r\n", 413,
                "--max-body"},
        Refused{"LargeChunk", "POST /" + kHost + "Transfer-Encoding: chunked\r\n\r\n1001\r\n", 413,
                "--max-body"},
        Refused{"ManyChunks",
                "POST /" + kHost + "Transfer-Encoding: chunked\r\n\r\n1000\r\n" +
                    std::string(4096, 'x') + "\r\n1\r\n",
                413, "more than 4096 bytes"},
        Refused{"Expectation", "POST /" + kHost + "Content-Length: 1\r\nExpect: gold\r\n\r\n", 417,
                "gold"},
        Refused{"LongHeader", "GET /" + kHost + "x: " + std::string(2000, 'y') + "\r\n\r\n", 431,
                "more than 1024 bytes"},
        Refused{"ManyFields",
                "GET /" + kHost +
                    [] {
                      std::string fields;
                      for (int i = 0; i < 128; ++i) fields += "a:\r\n";
                      return fields;
                    }() +
                    "\r\n",
                431, "more than 128 fields"},
        Refused{"LongTarget", "GET /" + std::string(2000, 'y') + kHost + "\r\n", 431, "1024"},
        Refused{"LongChunkLine",
                "POST /" + kHost + "Transfer-Encoding: chunked\r\n\r\n1;" + std::string(2000, 'y'),
                431, "1024"},
        Refused{"Encoding", "POST /" + kHost + "Transfer-Encoding: gzip\r\n\r\n", 501, "gzip"},
        Refused{"TwoEncodings", "POST /" + kHost + "Transfer-Encoding: gzip, chunked\r\n\r\n", 501,
                "gzip, chunked"}),
    [](const auto& info) { return info.param.name; });

TEST(RequestReader, BodyOfExactlyTheLimitIsRead) {
  const std::string body(4096, 'b');
  EXPECT_EQ(read_whole("POST /" + kHost + "Content-Length: 4096\r\n\r\n" + body),
            "keep POST /|host=a|content-length=4096|" + body + "\n");
}

TEST(RequestReader, AnAnnouncedBodyTakesNoMemoryBeforeItComes) {
  const ReadLimits limits{.header_max = 1024, .body_max = std::size_t{1} << 40, .token = ""};
  RequestReader reader(limits);
  reader.read("POST /" + kHost + "Content-Length: 1073741824\r\n\r\nx");
  EXPECT_EQ(reader.state(), State::kReading);
  EXPECT_LE(reader.request().body.capacity(), std::size_t{64} << 10);
}

TEST(RequestReader, TokenIsTakenInAnySpellingOfTheScheme) {
  const ReadLimits limits{.header_max = 1024, .body_max = 4096, .token = "s3cret"};
  const auto status = [&](const std::string& header) {
    return read_whole("GET /" + kHost + header + "\r\n", limits).substr(0, 4);
  };
  EXPECT_EQ(status("Authorization: Bearer s3cret\r\n"), "keep");
  EXPECT_EQ(status("Authorization: bearer  s3cret\r\n"), "keep");
  for (const char* wrong : {"", "Authorization: s3cret\r\n", "Authorization: Bearer s3creT\r\n",
                            "Authorization: Bearer s3cre\r\n", "Authorization: Bearer s3cret2\r\n",
                            "Authorization: Bearer\r\n", "Authorization: Bearer \r\n",
                            "Authorization: Basic s3cret\r\n"})
    EXPECT_EQ(status(wrong), "401{") << wrong;
}

TEST(RequestReader, TokenIsAskedForBeforeABodyIsRead) {
  const ReadLimits limits{.header_max = 1024, .body_max = 4096, .token = "s3cret"};
  RequestReader reader(limits);
  reader.read("POST /" + kHost + "Content-Length: 9999\r\n\r\n");
  ASSERT_EQ(reader.state(), State::kRefused);
  EXPECT_EQ(reader.refusal().status, 401u);
  EXPECT_EQ(reader.refusal().headers,
            (std::vector<std::pair<std::string, std::string>>{{"WWW-Authenticate", "Bearer"}}));
}

// Real requests with some bytes changed, cut and doubled, in pieces of any size, are read as in one
// piece. Only a header whose end has not come may wait for it although it is wrong already.
TEST(RequestReader, RandomBytesAreReadOrRefused) {
  constexpr unsigned kSeed = 45;
  SCOPED_TRACE(kSeed);
  std::mt19937 random(kSeed);
  const auto below = [&](std::size_t n) { return random() % n; };
  int refused = 0;
  for (int round = 0; round < 5000; ++round) {
    std::string bytes = (round % 3 == 0 ? kChunked : kPost) + (round % 5 == 0 ? kGet : kChunked);
    for (std::size_t changes = below(4); changes-- > 0;)
      bytes[below(bytes.size())] =
          static_cast<char>(below(3) == 0 ? "\r\n: ;0"[below(6)] : random());
    if (below(4) == 0) bytes.resize(1 + below(bytes.size()));
    if (below(4) == 0) bytes.insert(below(bytes.size()), bytes.substr(0, below(bytes.size())));
    const std::string whole = read_whole(bytes);
    refused += whole.find("{\"error\"") != std::string::npos;
    std::string pieces = read_all(kLimits, bytes, [&] { return 1 + below(40); });
    if (pieces.ends_with("begun")) {
      pieces.resize(pieces.size() - 5);
      EXPECT_EQ(whole.substr(0, pieces.size()), pieces) << bytes;
    } else {
      EXPECT_EQ(whole, pieces) << bytes;
    }
  }
  EXPECT_GT(refused, 500);
  EXPECT_LT(refused, 4500);
}

}  // namespace
}  // namespace cairn::serving
