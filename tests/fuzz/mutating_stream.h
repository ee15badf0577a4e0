// A stream on which some of the bytes that leave are changed: real traffic, broken on the way.
#pragma once
#include <algorithm>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "rpc/net/byte_stream.h"

namespace cairn::fuzz {

// Which outgoing bytes, counted from the first after the greeting, are changed, and by which bits.
// May grow while the stream is used.
using Changes = std::map<std::uint64_t, std::uint8_t>;

class MutatingStream final : public rpc::ByteStream {
 public:
  MutatingStream(kj::Own<rpc::ByteStream> inner, std::shared_ptr<const Changes> changes)
      : inner_(kj::mv(inner)), changes_(std::move(changes)) {}

  kj::Promise<size_t> tryRead(void* buffer, size_t least, size_t most) override {
    return inner_->tryRead(buffer, least, most);
  }
  kj::Promise<void> write(const void* buffer, size_t size) override {
    const auto* bytes = static_cast<const kj::byte*>(buffer);
    return send({bytes, bytes + size});
  }
  kj::Promise<void> write(kj::ArrayPtr<const kj::ArrayPtr<const kj::byte>> pieces) override {
    std::vector<kj::byte> all;
    for (const auto& piece : pieces) all.insert(all.end(), piece.begin(), piece.end());
    return send(std::move(all));
  }
  kj::Promise<void> write(std::vector<Piece> pieces) override {
    std::vector<kj::byte> all;
    for (const Piece& piece : pieces)
      all.insert(all.end(), piece.begin(), piece.begin() + piece.bytes.size());
    return send(std::move(all));
  }
  kj::Promise<void> whenWriteDisconnected() override { return inner_->whenWriteDisconnected(); }
  void shutdownWrite() override { inner_->shutdownWrite(); }
  void abortRead() override { inner_->abortRead(); }
  std::size_t read_now(void* to, std::size_t most) override { return inner_->read_now(to, most); }
  std::uint64_t bytes_in() const override { return inner_->bytes_in(); }
  std::uint64_t bytes_out() const override { return inner_->bytes_out(); }
  void abort() override { inner_->abort(); }
  std::unique_ptr<rpc::Socket> detach() override { return inner_->detach(); }

 private:
  kj::Promise<void> send(std::vector<kj::byte> bytes) {
    for (auto change = changes_->lower_bound(sent_);
         change != changes_->end() && change->first < sent_ + bytes.size(); ++change)
      bytes[change->first - sent_] ^= change->second;
    sent_ += bytes.size();
    auto kept = std::make_shared<std::vector<kj::byte>>(std::move(bytes));
    std::vector<Piece> pieces;
    pieces.push_back({kj::arrayPtr(kept->data(), kept->size()), kept});
    return inner_->write(std::move(pieces));
  }

  kj::Own<rpc::ByteStream> inner_;
  std::shared_ptr<const Changes> changes_;
  std::uint64_t sent_ = 0;
};

}  // namespace cairn::fuzz
