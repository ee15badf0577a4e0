// TableLock: who talks to the shards about their tables. One at a time.
//
// Making new tables, attaching a ps and restoring a checkpoint each take several calls to a shard,
// between which its tables are half made. Were two of them to interleave, a shard could be opened
// by the one while the other has restored only some of its rows. No closure that uses variables is
// sent while the lock is held.
//
//   while (lock.held()) co_await session.changed.wait();
//   const TableLock::Hold hold(lock);      // no wait between the two
//
//   Thread  the engine's. It blocks no thread: a coroutine that wants it waits for `changed`, and
//           then looks again.
#pragma once
#include "core/base/error.h"
#include "rpc/server/signal.h"

namespace cairn {

class TableLock {
 public:
  // `changed` is notified whenever the lock is released.
  explicit TableLock(rpc::Signal& changed) : changed_(changed) {}
  TableLock(const TableLock&) = delete;
  TableLock& operator=(const TableLock&) = delete;

  bool held() const { return held_; }

  // Holds the lock for as long as it lives, also while its coroutine waits. A coroutine that is
  // cancelled releases it with its frame.
  class Hold {
   public:
    explicit Hold(TableLock& lock) : lock_(lock) {
      CAIRN_CHECK(!lock_.held_, "two at once talk to the shards about their tables");
      lock_.held_ = true;
    }
    ~Hold() {
      lock_.held_ = false;
      lock_.changed_.notify_all();
    }
    Hold(const Hold&) = delete;
    Hold& operator=(const Hold&) = delete;

   private:
    TableLock& lock_;
  };

 private:
  rpc::Signal& changed_;
  bool held_ = false;
};

}  // namespace cairn
