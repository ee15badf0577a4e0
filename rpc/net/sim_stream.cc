#include "rpc/net/sim_stream.h"

#include <algorithm>
#include <utility>

#include "core/base/error.h"

namespace cairn::rpc {
namespace {

kj::Exception broken() {
  return kj::Exception(kj::Exception::Type::DISCONNECTED, __FILE__, __LINE__,
                       kj::heapString("the connection ended (simulated)"));
}

}  // namespace

// A read that waits for bytes.
class SimEnd::Reading {
 public:
  Reading(kj::PromiseFulfiller<size_t>& fulfiller, SimEnd& end, kj::byte* to, size_t min,
          size_t max)
      : fulfiller(fulfiller), end(end.shared_from_this()), to(to), min(min), max(max) {
    end.reading_ = this;
    end.serve_reader();
  }
  ~Reading() {
    if (end->reading_ == this) end->reading_ = nullptr;
  }
  kj::PromiseFulfiller<size_t>& fulfiller;
  std::shared_ptr<SimEnd> end;
  kj::byte* to;
  size_t min, max, got = 0;
};

SimEnd::SimEnd(SimReactor& reactor, std::shared_ptr<SimLinks> links, std::string host,
               std::string peer_host)
    : reactor_(reactor),
      links_(std::move(links)),
      host_(std::move(host)),
      peer_host_(std::move(peer_host)) {}

size_t SimEnd::take(kj::byte* to, size_t max) {
  auto count = std::min(max, inbox_.size() - inbox_begin_);
  std::copy_n(inbox_.data() + inbox_begin_, count, to);
  inbox_begin_ += count;
  if (inbox_begin_ == inbox_.size()) {
    inbox_.clear();
    inbox_begin_ = 0;
  }
  return count;
}

// At the end of the stream a read gets what there is; at a break it fails unless it has enough.
void SimEnd::serve_reader() {
  if (reading_ == nullptr) return;
  auto& reading = *reading_;
  reading.got += take(reading.to + reading.got, reading.max - reading.got);
  bool enough = reading.got >= reading.min && reading.got > 0;
  if (!enough && !ended_ && !broken_) return;
  reading_ = nullptr;
  if (!enough && broken_) return reading.fulfiller.reject(broken());
  reading.fulfiller.fulfill(size_t{reading.got});
}

kj::Promise<size_t> SimEnd::read(void* to, size_t min, size_t max) {
  return kj::newAdaptedPromise<size_t, Reading>(*this, static_cast<kj::byte*>(to), min, max);
}

kj::Promise<void> SimEnd::write(std::vector<kj::byte> bytes, std::shared_ptr<SharedMemory> shared) {
  if (broken_ || finished_) return broken();
  if (bytes.empty()) return kj::READY_NOW;
  // As seen from here the write has failed, and how far it came is unknown.
  if (links_->take_drop(host_, peer_host_)) {
    break_now();
    return broken();
  }
  bytes_out_ += bytes.size();
  send(Piece{std::move(bytes), false, std::move(shared)});
  return kj::READY_NOW;
}

void SimEnd::send(Piece piece) {
  under_way_.push_back(std::move(piece));
  set_out();
}

// A piece never arrives before the one ahead of it, however short the delay that it draws.
void SimEnd::set_out() {
  if (links_->held(host_, peer_host_)) return hold();
  last_arrival_ = std::max(last_arrival_, reactor_.now() + links_->draw_delay(host_, peer_host_));
  reactor_.schedule(last_arrival_ - reactor_.now(),
                    [self = shared_from_this()] { self->deliver_first(); });
}

// A partition that began meanwhile also holds what is under way. An arrival is of no piece of its
// own: it takes the oldest, so that the order stays however partitions come and go.
void SimEnd::deliver_first() {
  if (links_->held_under_way(host_, peer_host_)) return hold();
  if (under_way_.empty()) return;
  auto piece = std::move(under_way_.front());
  under_way_.pop_front();
  if (auto peer = peer_.lock()) peer->arrive(std::move(piece));
}

void SimEnd::hold() {
  ++held_;
  held_self_ = shared_from_this();
}

void SimEnd::arrive(Piece piece) {
  if (broken_ || left_) return;
  links_->delivered(peer_host_, host_, piece.bytes.size());
  bytes_in_ += piece.bytes.size();
  inbox_.insert(inbox_.end(), piece.bytes.begin(), piece.bytes.end());
  if (piece.shared) shared_ = std::move(piece.shared);
  if (piece.last) ended_ = true;
  serve_reader();
}

void SimEnd::finish() {
  if (finished_ || broken_) return;
  finished_ = true;
  send(Piece{{}, true});
}

void SimEnd::leave() {
  if (left_) return;
  finish();
  left_ = true;
  inbox_.clear();
  inbox_begin_ = 0;
}

// A partition may hold the last reference to this end, so `self` keeps it to the last line.
void SimEnd::fail() {
  auto self = shared_from_this();
  broken_ = true;
  under_way_.clear();
  held_ = 0;
  held_self_.reset();
  serve_reader();
}

void SimEnd::break_now() {
  fail();
  if (auto peer = peer_.lock()) peer->fail();
}

void SimEnd::die() {
  finish();
  broken_ = true;  // bytes sent before, held back or not, still arrive
  serve_reader();
}

void SimEnd::resume() {
  auto self = std::exchange(held_self_, nullptr);
  for (auto pieces = std::exchange(held_, 0); pieces > 0; --pieces) set_out();
}

namespace {

class SimStream final : public ByteStream {
 public:
  SimStream(std::shared_ptr<SimEnd> end, std::string peer_address)
      : end_(std::move(end)), peer_address_(std::move(peer_address)) {}
  ~SimStream() noexcept(false) {
    if (end_) end_->leave();
  }

  kj::Promise<size_t> tryRead(void* buffer, size_t min, size_t max) override {
    return end_->read(buffer, min, max);
  }
  kj::Promise<void> write(const void* buffer, size_t size) override {
    auto* bytes = static_cast<const kj::byte*>(buffer);
    return end_->write({bytes, bytes + size});
  }
  kj::Promise<void> write(kj::ArrayPtr<const kj::ArrayPtr<const kj::byte>> pieces) override {
    std::vector<kj::byte> bytes;
    for (auto& piece : pieces) bytes.insert(bytes.end(), piece.begin(), piece.end());
    return end_->write(std::move(bytes));
  }
  // RPC always has a read under way, and a simulated end shows there.
  kj::Promise<void> whenWriteDisconnected() override { return kj::NEVER_DONE; }
  void shutdownWrite() override { end_->finish(); }

  std::uint64_t bytes_in() const override { return end_->bytes_in(); }
  std::uint64_t bytes_out() const override { return end_->bytes_out(); }
  void abort() override { end_->die(); }
  bool can_share() const override { return true; }
  void share(const std::shared_ptr<SharedMemory>& memory,
             std::span<const std::uint8_t> bytes) override {
    end_->write({bytes.begin(), bytes.end()}, memory);
  }
  std::shared_ptr<SharedMemory> take_shared() override { return end_->take_shared(); }
  std::unique_ptr<Socket> detach() override {
    return make_sim_socket(std::exchange(end_, nullptr), peer_address_);
  }

 private:
  std::shared_ptr<SimEnd> end_;
  std::string peer_address_;
};

class SimSocket final : public Socket {
 public:
  SimSocket(std::shared_ptr<SimEnd> end, std::string peer_address)
      : end_(std::move(end)), peer_address_(std::move(peer_address)) {}
  ~SimSocket() override {
    if (end_) end_->leave();
  }
  kj::Own<ByteStream> attach(Reactor&, const StreamOptions&) override {
    return kj::heap<SimStream>(std::exchange(end_, nullptr), peer_address_);
  }
  std::string peer_address() const override { return peer_address_; }

 private:
  std::shared_ptr<SimEnd> end_;
  std::string peer_address_;
};

}  // namespace

std::unique_ptr<Socket> make_sim_socket(std::shared_ptr<SimEnd> end, std::string peer_address) {
  return std::make_unique<SimSocket>(std::move(end), std::move(peer_address));
}

}  // namespace cairn::rpc
