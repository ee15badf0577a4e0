// Where the members of a group of fake devices leave what they add up: in the memory of one
// process, or, for a group that spans processes, in files of a folder whose path is the group's id.
// A file is there as a whole or not at all.
//   Thread  any.
#pragma once
#include <stdlib.h>

#include <cstddef>
#include <deque>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "core/base/error.h"

namespace cairn::testing {

class FakeShares {
 public:
  using Bytes = std::vector<std::byte>;
  using Share = std::vector<Bytes>;  // by value
  virtual ~FakeShares() = default;
  virtual void join(std::size_t /*rank*/) {}
  virtual void put(std::size_t call, std::size_t rank, Share share) = 0;
  // Those that were put, by rank. Each of the `size` members asks once for each call, in order.
  virtual std::vector<Share> of_call(std::size_t call, std::size_t size) = 0;
};

class SharesInMemory final : public FakeShares {
 public:
  void put(std::size_t call, std::size_t rank, Share share) override {
    const std::lock_guard hold(mutex_);
    if (call - first_ == calls_.size()) calls_.emplace_back();
    auto& shares = calls_[call - first_].shares;
    if (shares.size() <= rank) shares.resize(rank + 1);
    shares[rank] = {std::move(share), true};
  }
  std::vector<Share> of_call(std::size_t call, std::size_t size) override {
    const std::lock_guard hold(mutex_);
    Call& asked = calls_.at(call - first_);
    std::vector<Share> all;
    for (const auto& [share, there] : asked.shares)
      if (there) all.push_back(share);
    if (++asked.asked == size) {  // of all, the oldest
      calls_.pop_front();
      ++first_;
    }
    return all;
  }

 private:
  struct Call {
    std::vector<std::pair<Share, bool>> shares;  // by rank; whether it is there
    std::size_t asked = 0;
  };
  std::mutex mutex_;  // guards what is below
  std::deque<Call> calls_;
  std::size_t first_ = 0;  // the number of the first of them
};

class SharesInFiles final : public FakeShares {
 public:
  // A new folder, in that of CAIRN_FAKE_SUMS, which is the caller's to remove, or one that goes
  // with this process.
  static std::string new_folder() {
    const char* const given = ::getenv("CAIRN_FAKE_SUMS");
    std::string folder = str(given != nullptr ? given : "/tmp", "/cairn-sums-XXXXXX");
    if (::mkdtemp(folder.data()) == nullptr) throw InternalError("no folder for fake sums");
    static Removed removed;
    if (given == nullptr) removed.add(folder);
    return folder;
  }
  explicit SharesInFiles(std::string folder) : folder_(std::move(folder)) {}

  void join(std::size_t rank) override {
    CAIRN_CHECK(!std::filesystem::exists(file("member", rank)), "there is a rank ", rank,
                " already");
    write(file("member", rank), {});
  }
  void put(std::size_t call, std::size_t rank, Share share) override {
    write(file(std::to_string(call), rank), share);
  }
  std::vector<Share> of_call(std::size_t call, std::size_t size) override {
    std::vector<Share> all;
    for (std::size_t rank = 0; rank < size; ++rank)
      if (const std::string path = file(std::to_string(call), rank); std::filesystem::exists(path))
        all.push_back(read(path));
    return all;
  }

 private:
  class Removed {
   public:
    ~Removed() {
      for (const std::string& folder : folders_) std::filesystem::remove_all(folder);
    }
    void add(const std::string& folder) {
      const std::lock_guard hold(mutex_);
      folders_.push_back(folder);
    }

   private:
    std::mutex mutex_;  // guards folders_
    std::vector<std::string> folders_;
  };

  std::string file(const std::string& what, std::size_t rank) const {
    return str(folder_, "/", what, ".", rank);
  }
  // Each value behind its size.
  static void write(const std::string& path, const Share& share) {
    {
      std::ofstream out(path + ".new", std::ios::binary);
      for (const Bytes& value : share) {
        const std::size_t bytes = value.size();
        out.write(reinterpret_cast<const char*>(&bytes), sizeof bytes);
        out.write(reinterpret_cast<const char*>(value.data()), static_cast<std::streamsize>(bytes));
      }
    }
    std::filesystem::rename(path + ".new", path);
  }
  static Share read(const std::string& path) {
    std::ifstream in(path, std::ios::binary);
    Share share;
    for (std::size_t bytes = 0; in.read(reinterpret_cast<char*>(&bytes), sizeof bytes);) {
      Bytes& value = share.emplace_back(bytes);
      in.read(reinterpret_cast<char*>(value.data()), static_cast<std::streamsize>(bytes));
    }
    return share;
  }

  const std::string folder_;
};

}  // namespace cairn::testing
