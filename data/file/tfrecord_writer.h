// Writing TFRecord files, of tf.train.Examples or of any records.
//
//     TfRecordWriter file("train.tfrecord");
//     file.write(ExampleMessage().floats("x", {0.5f, 1}).integers("id", {7}).bytes());
//     file.finish();
#pragma once
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace cairn {

class OutputFile;  // core/disk/output_file.h

// One tf.train.Example, feature by feature. Lists of numbers are packed.
class ExampleMessage {
 public:
  ExampleMessage& floats(std::string_view name, std::span<const float> values);
  ExampleMessage& floats(std::string_view name, std::initializer_list<float> values);
  ExampleMessage& integers(std::string_view name, std::span<const std::int64_t> values);
  ExampleMessage& integers(std::string_view name, std::initializer_list<std::int64_t> values);
  ExampleMessage& texts(std::string_view name, const std::vector<std::string>& values);
  std::string bytes() const;  // serialised

 private:
  ExampleMessage& add(std::string_view name, int kind, std::string_view list);
  std::string features_;
};

// A record as it lies in a file.
std::string framed(std::string_view record);

// A file that appears whole or not at all.
class TfRecordWriter {
 public:
  //   Errors  InvalidArgument: it is a folder; NotFound: there is no such folder; PermissionDenied;
  //           and of all calls, ResourceExhausted: the disk is full.
  explicit TfRecordWriter(const std::string& path);
  ~TfRecordWriter();
  void write(std::string_view record);
  // To be called once, after the last write().
  void finish();

 private:
  std::unique_ptr<OutputFile> file_;
  std::string pending_;
};

}  // namespace cairn
