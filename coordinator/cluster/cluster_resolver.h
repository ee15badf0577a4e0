// ClusterResolver: where a program learns who is in the cluster and which task it is itself: by
// hand, or from TF_CONFIG.
//
// Absent things are absent, not errors: a TF_CONFIG without "cluster" is a cluster of no jobs, one
// without "task" is no task. An entry that is there but wrong is an InvalidArgument of the call
// that needed the entry, naming its key and value.
#pragma once
#include <cstdint>
#include <optional>
#include <string>

#include "coordinator/cluster/cluster_spec.h"

namespace cairn {

// Named in a call or a constructor, each goes before what the resolver finds.
struct TaskOverrides {
  std::optional<std::string> task_type;
  std::optional<std::int64_t> task_id;
  std::optional<std::string> rpc_layer;
};

// A strategy asks its resolver at the start. The names and their meaning are those of
// tf.distribute.cluster_resolver, so that a TF_CONFIG is understood as launchers write it for the
// reference.
class ClusterResolver {
 public:
  virtual ~ClusterResolver() = default;
  virtual ClusterSpec cluster_spec() const = 0;
  // Which task this process is; absent: none in particular.
  virtual std::optional<std::string> task_type() const = 0;
  virtual std::optional<std::int64_t> task_id() const = 0;
  // Goes before the address that master() gives, and has no other effect here.
  virtual std::optional<std::string> rpc_layer() const = 0;
  // The address to talk to: "host:port", or "layer://host:port" where an rpc layer is named.
  virtual std::string master(const TaskOverrides& asked = {}) const = 0;
};

struct SimpleClusterOptions {
  std::string master;  // master()'s answer when it is asked for no task
  std::optional<std::string> task_type = {};
  std::optional<std::int64_t> task_id = {};
  std::optional<std::string> rpc_layer = {};
};

// Returns the values it was made with, and looks nowhere else: for programs that know their
// cluster, and for tests.
class SimpleClusterResolver final : public ClusterResolver {
 public:
  explicit SimpleClusterResolver(ClusterSpec spec, SimpleClusterOptions options = {})
      : spec_(std::move(spec)), options_(std::move(options)) {}
  ClusterSpec cluster_spec() const override { return spec_; }
  std::optional<std::string> task_type() const override { return options_.task_type; }
  std::optional<std::int64_t> task_id() const override { return options_.task_id; }
  std::optional<std::string> rpc_layer() const override { return options_.rpc_layer; }
  std::string master(const TaskOverrides& asked = {}) const override;

 private:
  ClusterSpec spec_;
  SimpleClusterOptions options_;
};

// {"cluster": {"chief": ["host:port"], "worker": [...], "ps": [...]}, "task": {"type": "chief",
// "index": 0}, "rpc_layer": "grpc"}, from the environment variable TF_CONFIG, read anew at every
// call, or from a text. Not set is the same as "{}".
//   A job is a list of addresses, or {"index": address} with gaps. An index may be written as text,
//   as launchers do.
//   Errors  of each call: InvalidArgument, where the part that it needs is not of this form.
class TFConfigClusterResolver final : public ClusterResolver {
 public:
  explicit TFConfigClusterResolver(TaskOverrides overrides = {})
      : overrides_(std::move(overrides)) {}
  explicit TFConfigClusterResolver(std::string text, TaskOverrides overrides = {})
      : text_(std::move(text)), overrides_(std::move(overrides)) {}

  ClusterSpec cluster_spec() const override;
  std::optional<std::string> task_type() const override;
  std::optional<std::int64_t> task_id() const override;
  std::optional<std::string> rpc_layer() const override;
  // "session_master" of the text if there is one; "" for a cluster of no or one task; else this
  // task's address.
  //   Errors  InvalidArgument: this task is not in the cluster.
  std::string master(const TaskOverrides& asked = {}) const override;

 private:
  std::string text() const;
  std::optional<std::string> text_;
  TaskOverrides overrides_;
};

}  // namespace cairn
