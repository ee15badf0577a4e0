#include "rpc/net/message_stream.h"

#include <kj/debug.h>

#include <boost/container/small_vector.hpp>

namespace cairn::rpc {
namespace {

// segments from this size on get a buffer of their own
constexpr std::size_t kOwnBufferBytesMin = 4096;
constexpr std::uint32_t kSegmentsMax = 512;  // Cap'n Proto's own bound
constexpr int kStreamWindowBytes = 8 << 20;  // of `-> stream` calls, unacknowledged at most
// Reading a field twice counts twice against the traversal limit, which guards against
// amplification, not size.
constexpr std::uint64_t kReadsOfAMessage = 1024;

capnp::ReaderOptions roomy(capnp::ReaderOptions options, std::size_t message_words_max) {
  options.traversalLimitInWords = message_words_max * kReadsOfAMessage;
  return options;
}

}  // namespace

// A message as it comes in: a head, the sizes of the other segments, then the segments, small
// neighbours in one piece.
class PooledMessageStream::Message final : public capnp::MessageReader {
 public:
  Message(const capnp::ReaderOptions& options, BufferPool& pool, std::size_t words_max)
      : MessageReader(options), pool_(pool), words_max_(words_max) {
    next_ = {head_, sizeof head_};
  }
  ~Message() noexcept(false) override {}
  kj::ArrayPtr<const capnp::word> getSegment(kj::uint id) override {
    return id < segments_.size() ? segments_[id] : nullptr;
  }

  // Where the next bytes belong; none are left to come at 0.
  struct Part {
    void* to = nullptr;
    std::size_t bytes = 0;
  };
  const Part& next() const { return next_; }
  bool begun() const { return stage_ != Stage::kHead || next_.bytes < sizeof head_; }

  void came(std::size_t bytes) {
    next_ = {static_cast<char*>(next_.to) + bytes, next_.bytes - bytes};
    while (next_.bytes == 0 && stage_ != Stage::kWhole) advance();
  }

 private:
  enum class Stage { kHead, kSizes, kSegments, kWhole };

  // The sizes come from a peer that may be wrong or hostile: their number is verified before the
  // table is allocated, and their sum before any segment is.
  void advance() {
    if (stage_ == Stage::kHead) {
      KJ_REQUIRE(head_[0] < kSegmentsMax - 1, "message has too many segments");
      sizes_.resize((head_[0] + 1) & ~1u);  // the table ends on a word
      next_ = {sizes_.data(), sizes_.size() * sizeof(std::uint32_t)};
      stage_ = Stage::kSizes;
    } else if (stage_ == Stage::kSizes) {
      find_memory();
      stage_ = Stage::kSegments;
    } else if (at_ == segments_.size()) {
      stage_ = Stage::kWhole;
    } else {
      next_segments();
    }
  }

  static bool is_small(std::size_t words) {
    return words * sizeof(capnp::word) < kOwnBufferBytesMin;
  }
  std::size_t words(std::size_t segment) const {
    return segment == 0 ? head_[1] : sizes_[segment - 1];
  }

  // Small segments share one allocation, end to end, so that one read can fill several. A large one
  // gets a page-aligned buffer of its own, which can be kept when the message goes.
  void find_memory() {
    const std::size_t count = std::size_t{head_[0]} + 1;
    std::size_t total = 0, small = 0;
    for (std::size_t i = 0; i < count; ++i) {
      total += words(i);
      if (is_small(words(i))) small += words(i);
    }
    KJ_REQUIRE(total <= words_max_, "message exceeds the receive limit", total, words_max_);
    small_.reset(new capnp::word[small]);
    segments_.reserve(count);
    capnp::word* next_small = small_.get();
    for (std::size_t i = 0; i < count; ++i) {
      capnp::word* to = next_small;
      if (is_small(words(i))) {
        next_small += words(i);
      } else {
        bulk_.push_back(pool_.take(words(i) * sizeof(capnp::word)));
        to = reinterpret_cast<capnp::word*>(bulk_.back().get());
      }
      segments_.push_back(kj::arrayPtr(to, words(i)));
    }
  }

  void next_segments() {
    const bool small = is_small(segments_[at_].size());
    next_ = {const_cast<capnp::word*>(segments_[at_].begin()), 0};
    do next_.bytes += segments_[at_++].asBytes().size();
    while (small && at_ < segments_.size() && is_small(segments_[at_].size()));
  }

  BufferPool& pool_;
  std::size_t words_max_;
  Stage stage_ = Stage::kHead;
  Part next_;
  std::uint32_t head_[2] = {0, 0};  // segments less one; words of the first
  template <typename T>
  using Few = boost::container::small_vector<T, 4>;  // of most messages, without memory of its own
  Few<std::uint32_t> sizes_;                         // words of the others, padded
  Few<kj::ArrayPtr<const capnp::word>> segments_;
  std::size_t at_ = 0;  // segments that have come, or are under way
  Few<BufferPool::Buffer> bulk_;
  std::unique_ptr<capnp::word[]> small_;
};

PooledMessageStream::PooledMessageStream(ByteStream& stream, BufferPool& pool,
                                         std::size_t message_bytes_max)
    : stream_(stream), pool_(pool), message_words_max_(message_bytes_max / sizeof(capnp::word)) {}

kj::Promise<PooledMessageStream::Received> PooledMessageStream::tryReadMessage(
    kj::ArrayPtr<kj::AutoCloseFd>, capnp::ReaderOptions options, kj::ArrayPtr<capnp::word>) {
  return read_on(kj::heap<Message>(roomy(options, message_words_max_), pool_, message_words_max_));
}

// Bytes that are there are taken without a promise, since each promise costs memory: most messages
// come whole.
kj::Promise<PooledMessageStream::Received> PooledMessageStream::read_on(kj::Own<Message> message) {
  while (message->next().bytes > 0) {
    const Message::Part part = message->next();
    if (const std::size_t there = stream_.read_now(part.to, part.bytes); there > 0) {
      message->came(there);
      continue;
    }
    auto read = stream_.tryRead(part.to, part.bytes, part.bytes);
    return read.then(
        [this, part, message = kj::mv(message)](size_t bytes) mutable -> kj::Promise<Received> {
          if (bytes == 0 && !message->begun()) return Received(nullptr);
          KJ_REQUIRE(bytes == part.bytes, "truncated message");
          message->came(bytes);
          return read_on(kj::mv(message));
        });
  }
  return Received(capnp::MessageReaderAndFds{kj::mv(message), nullptr});
}

const void* PooledMessageStream::attach(Attachment attachment) {
  const std::size_t bytes = attachment.bytes();
  // Keys repeat only after tens of millions, and an attachment lives for a message: one try
  // suffices unless a message is never let go.
  const void* key = keys_.next(bytes);
  while (attached_.contains(key)) key = keys_.next(bytes);
  attached_.emplace(key, std::move(attachment));
  attached_bytes_ += bytes;
  return key;
}

void PooledMessageStream::drop_attachments() {
  attached_.clear();
  attached_bytes_ = 0;
}

kj::Promise<void> PooledMessageStream::writeMessage(
    kj::ArrayPtr<const int>, kj::ArrayPtr<const kj::ArrayPtr<const capnp::word>> segments) {
  // The head: the number of segments less one, then their sizes in words, padded to a whole word.
  // The stream may send it after this has returned, so it has an owner. Segments need none: the
  // library keeps their message until the write resolves. What is attached brings its owners along.
  auto head = std::make_shared<std::vector<std::uint32_t>>((segments.size() + 2) & ~std::size_t{1});
  (*head)[0] = static_cast<std::uint32_t>(segments.size() - 1);
  for (std::size_t i = 0; i < segments.size(); ++i)
    (*head)[i + 1] = static_cast<std::uint32_t>(segments[i].size());
  std::vector<ByteStream::Piece> pieces;
  pieces.reserve(segments.size() + 1);
  pieces.push_back({kj::arrayPtr(head->data(), head->size()).asBytes(), head});
  for (const auto& segment : segments) {
    if (!AttachmentKeys::is_key(segment.begin())) {
      pieces.push_back({segment.asBytes(), nullptr});
      continue;
    }
    const auto found = attached_.find(segment.begin());
    KJ_REQUIRE(found != attached_.end(), "a message outlived its attachment");
    attached_bytes_ -= found->second.bytes();
    found->second.append_to(pieces);
    attached_.erase(found);
  }
  auto written = stream_.write(std::move(pieces));
  if (attached_.empty() || !on_unclaimed_) return written;
  return written.then([this] {
    if (!attached_.empty()) on_unclaimed_();
  });
}

kj::Promise<void> PooledMessageStream::writeMessages(
    kj::ArrayPtr<kj::ArrayPtr<const kj::ArrayPtr<const capnp::word>>> messages) {
  kj::Promise<void> all = kj::READY_NOW;
  for (auto& message : messages)
    all = all.then([this, message] { return writeMessage(nullptr, message); });
  return all;
}

// The library asks for the size of the socket's buffer and lets streaming calls have that much
// under way. We answer with a window of our own, for the stock buffer of a Unix socket is too small
// for bulk.
kj::Maybe<int> PooledMessageStream::getSendBufferSize() { return kStreamWindowBytes; }

kj::Promise<void> PooledMessageStream::end() {
  stream_.shutdownWrite();
  return kj::READY_NOW;
}

}  // namespace cairn::rpc
