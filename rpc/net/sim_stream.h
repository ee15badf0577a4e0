// One end of a simulated connection, and the ByteStream over it. For this room's .cc files.
#pragma once
#include <deque>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "rpc/loop/sim_reactor.h"
#include "rpc/net/byte_stream.h"

namespace cairn::rpc {

// The network, as one end of a stream uses it.
class SimLinks {
 public:
  virtual ~SimLinks() = default;
  virtual Duration draw_delay(const std::string& from, const std::string& to) = 0;
  // Whether what `from` writes to `to` has to wait, and what is under way already.
  virtual bool held(const std::string& from, const std::string& to) const = 0;
  virtual bool held_under_way(const std::string& from, const std::string& to) const = 0;
  virtual bool take_drop(const std::string& from, const std::string& to) = 0;
  virtual void delivered(const std::string& from, const std::string& to, std::size_t bytes) = 0;
};

class SimEnd : public std::enable_shared_from_this<SimEnd> {
 public:
  SimEnd(SimReactor& reactor, std::shared_ptr<SimLinks> links, std::string host,
         std::string peer_host);
  void join(std::weak_ptr<SimEnd> peer) { peer_ = std::move(peer); }
  const std::string& host() const { return host_; }
  const std::string& peer_host() const { return peer_host_; }

  // The stream's operations.
  kj::Promise<size_t> read(void* to, size_t min, size_t max);
  kj::Promise<void> write(std::vector<kj::byte> bytes,
                          std::shared_ptr<SharedMemory> shared = nullptr);
  std::shared_ptr<SharedMemory> take_shared() { return std::exchange(shared_, nullptr); }
  void finish();  // no more bytes from here: the other end reads the end after what was sent
  void leave();   // the stream is gone: as finish(), and what arrives is dropped
  std::uint64_t bytes_in() const { return bytes_in_; }
  std::uint64_t bytes_out() const { return bytes_out_; }

  // Faults.
  void break_now();  // both ends fail at once, as after a reset
  // this end's process is gone: it fails at once, the other end after what was sent
  void die();
  void resume();  // a partition from here was healed

 private:
  struct Piece {
    std::vector<kj::byte> bytes;
    bool last = false;  // the end of the stream
    std::shared_ptr<SharedMemory> shared = nullptr;
  };
  class Reading;

  void send(Piece piece);
  void set_out();
  void deliver_first();
  void arrive(Piece piece);
  void fail();
  void hold();
  size_t take(kj::byte* to, size_t max);
  void serve_reader();

  SimReactor& reactor_;
  std::shared_ptr<SimLinks> links_;
  std::string host_, peer_host_;
  std::weak_ptr<SimEnd> peer_;
  std::uint64_t bytes_in_ = 0, bytes_out_ = 0;

  // Receiving.
  std::vector<kj::byte> inbox_;
  size_t inbox_begin_ = 0;
  std::shared_ptr<SharedMemory> shared_;
  bool ended_ = false;  // the other side will send no more
  bool broken_ = false;
  bool left_ = false;
  Reading* reading_ = nullptr;

  // Sending.
  Duration last_arrival_{0};
  std::deque<Piece> under_way_;  // in the order sent
  int held_ = 0;                 // so many of them wait behind a partition
  // while anything is held: it must arrive even when the stream has gone
  std::shared_ptr<SimEnd> held_self_;
  bool finished_ = false;
};

std::unique_ptr<Socket> make_sim_socket(std::shared_ptr<SimEnd> end, std::string peer_address);

}  // namespace cairn::rpc
