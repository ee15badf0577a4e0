// Mailbox: responses on their way from computing threads to the server's thread.
//   Thread  any.
#pragma once
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "serving/http/http_connection.h"

namespace cairn::serving {

class Mailbox {
 public:
  struct Letter {
    std::shared_ptr<HttpConnection> to;
    HttpResponse response;
  };

  // True: the mailbox was empty, so that the caller must wake the server's thread. Drops the letter
  // if the mailbox is closed.
  bool add(Letter letter) {
    std::lock_guard hold(mutex_);
    if (closed_) return false;
    letters_.push_back(std::move(letter));
    return letters_.size() == 1;
  }

  bool add(std::vector<Letter> letters) {
    std::lock_guard hold(mutex_);
    if (closed_) return false;
    const bool was_empty = letters_.empty();
    for (Letter& each : letters) letters_.push_back(std::move(each));
    return was_empty;
  }

  // Swaps the letters into `out`, which must be empty: its memory serves the next ones.
  void take(std::vector<Letter>& out) {
    std::lock_guard hold(mutex_);
    letters_.swap(out);
  }

  void close() {
    std::lock_guard hold(mutex_);
    closed_ = true;
  }

 private:
  std::mutex mutex_;  // guards all of these
  std::vector<Letter> letters_;
  bool closed_ = false;
};

}  // namespace cairn::serving
