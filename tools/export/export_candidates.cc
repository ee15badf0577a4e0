#include "tools/export/export_candidates.h"

#include <memory>
#include <optional>

#include "core/base/error.h"
#include "core/disk/disk.h"
#include "serving/retrieval/hnsw_index.h"
#include "tools/ckpt/format/array_file.h"

namespace cairn::tools {
namespace {

bool is_index(const CandidateRequest& request) { return request.out.ends_with(".hnsw"); }

void verify_name(const CandidateRequest& request) {
  if (!is_index(request) && !request.out.ends_with(".npz"))
    throw InvalidArgumentError(
        str("\"", request.out, "\" ends neither in .npz nor in .hnsw, an index of hnswlib"));
  for (const std::string& file : {request.out, request.out + ".ids.npz"})
    if (system_disk().exists(file)) throw AlreadyExistsError(str(file, " exists already"));
}

std::vector<ckpt::ArrayInfo> infos(const CandidateRows::Count& all,
                                   std::optional<std::int64_t> width) {
  std::vector<ckpt::ArrayInfo> infos;
  if (all.is_text) {
    infos.push_back({"text", DType::kUint8, {static_cast<std::int64_t>(all.text_bytes)}});
    infos.push_back({"text_ends", DType::kInt64, {all.candidates}});
  } else {
    infos.push_back({"ids", DType::kInt64, {all.candidates}});
  }
  if (width) infos.push_back({"vectors", DType::kFloat32, {all.candidates, *width}});
  infos.push_back({"step", DType::kInt64, {1}});
  return infos;
}

// The names in the first arrays of a file, and where there is no index the vectors behind them.
class CandidateArrays {
 public:
  CandidateArrays(const std::string& path, const CandidateRows::Count& all,
                  std::optional<std::int64_t> width, std::int64_t step)
      : writer_(path, ckpt::ArrayFormat::kNpz, infos(all, width), {}) {
    append(infos(all, width).size() - 1, std::span<const std::int64_t>(&step, 1));
  }

  void append_name(const CandidateName& name) {
    if (name.text == nullptr) return append(0, std::span(&name.number, 1));
    append(0, std::span(*name.text));
    text_end_ += static_cast<std::int64_t>(name.text->size());
    append(1, std::span<const std::int64_t>(&text_end_, 1));
  }
  void append_vector(const CandidateName& name, std::span<const float> vector) {
    append(name.text != nullptr ? 2 : 1, vector);
  }
  void finish() { writer_.finish(); }

 private:
  template <typename Values>
  void append(std::size_t array, Values values) {
    writer_.append(array, reinterpret_cast<const std::byte*>(values.data()), values.size_bytes());
  }

  ckpt::ArrayWriter writer_;
  std::int64_t text_end_ = 0;
};

}  // namespace

CandidateExport export_candidates(const CandidateRequest& request) {
  verify_name(request);
  CandidateRows rows(request.from);
  const CandidateRows::Count all = rows.count();
  CandidateExport made{{request.out}, all.candidates, rows.width()};
  std::optional<serving::HnswIndex> index;
  if (is_index(request)) {
    made.files.push_back(request.out + ".ids.npz");
    index.emplace(rows.width(), all.candidates, request.links, request.ef_construction);
  }
  CandidateArrays arrays(made.files.back(), all,
                         index ? std::nullopt : std::optional<std::int64_t>(rows.width()),
                         rows.step());
  std::uint64_t place = 0;
  rows.each([&](const CandidateName& name, std::span<const float> vector) {
    arrays.append_name(name);
    if (index)
      index->add(vector, place++);
    else
      arrays.append_vector(name, vector);
  });
  if (index) index->save(request.out);
  arrays.finish();
  return made;
}

}  // namespace cairn::tools
