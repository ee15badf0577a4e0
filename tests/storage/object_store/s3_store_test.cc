#include "storage/object_store/s3_store.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <fstream>
#include <random>
#include <thread>

#include "core/base/error.h"
#include "storage/object_store/s3_signature.h"
#include "storage/object_store/s3_xml.h"
#include "tests/storage/fixture.h"
#include "tests/storage/object_store/s3_double.h"

namespace cairn::storage {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

constexpr std::size_t kFileBytes = 350'000;  // three parts and a half

std::string noise(std::size_t bytes) {
  std::mt19937 random(3);
  std::string all(bytes, '\0');
  for (char& c : all) c = static_cast<char>(random());
  return all;
}

std::string file_of(const TempFolder& folder, const std::string& bytes) {
  const std::string path = folder.path() + "/file";
  std::ofstream(path, std::ios::binary) << bytes;
  return path;
}

template <typename E>
std::string error_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const E& error) {
    return error.what();
  }
  return "no such error";
}

// The example "GET Object" of the API's reference.
TEST(S3Signature, IsThatOfTheReferencesExample) {
  const S3Credentials keys{"AKIAIOSFODNN7EXAMPLE", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"};
  const S3Request request{.method = "GET",
                          .path = "/test.txt",
                          .headers = {{"host", "examplebucket.s3.amazonaws.com"},
                                      {"range", "bytes=0-9"},
                                      {"x-amz-content-sha256", content_hash("")},
                                      {"x-amz-date", "20130524T000000Z"}}};
  EXPECT_THAT(s3_authorization(request, "us-east-1", keys),
              HasSubstr("f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41"));
}

// The example "GET Bucket (List Objects)", whose query is signed.
TEST(S3Signature, IsThatOfTheReferencesExampleWithAQuery) {
  const S3Credentials keys{"AKIAIOSFODNN7EXAMPLE", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"};
  const S3Request request{.method = "GET",
                          .path = "/",
                          .query = {{"max-keys", "2"}, {"prefix", "J"}},
                          .headers = {{"host", "examplebucket.s3.amazonaws.com"},
                                      {"x-amz-content-sha256", content_hash("")},
                                      {"x-amz-date", "20130524T000000Z"}}};
  EXPECT_THAT(s3_authorization(request, "us-east-1", keys),
              HasSubstr("34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7"));
}

TEST(S3Xml, TextIsFoundByElementsAndDecoded) {
  const std::string xml = "<a><Key>x&amp;y</Key></a><a><Key>&lt;&quot;</Key></a><a><Key>cut";
  ASSERT_THAT(xml_elements(xml, "a"), SizeIs(2));
  EXPECT_EQ(xml_text(xml, "Key"), "x&y");
  EXPECT_EQ(xml_text(xml_elements(xml, "a")[1], "Key"), "<\"");
  EXPECT_EQ(xml_text(xml, "None"), "");
}

struct S3Store : testing::Test {
  S3Double there;
  std::shared_ptr<ObjectStore> store = make_s3_store(there.options());
};

TEST_F(S3Store, GivesBackWhatWasPutWholeAndInRanges) {
  const std::string key = "a folder/ümlaut & <x>+~";
  store->put(key, "0123456789");
  EXPECT_EQ(store->get(key, 0, 10), "0123456789");
  EXPECT_EQ(store->get(key, 3, 4), "3456");
  EXPECT_EQ(store->get(key, 8, 100), "89");
  EXPECT_EQ(store->get(key, 10, 5), "");
  EXPECT_EQ(store->size(key), 10u);
  EXPECT_EQ(store->size("another"), std::nullopt);
  EXPECT_THROW(store->get("another", 0, 1), NotFoundError);
  store->remove(key);
  store->remove(key);
  EXPECT_EQ(store->size(key), std::nullopt);
}

TEST_F(S3Store, ListsAllPagesBelowAPrefix) {
  there.keys_a_page = 2;
  for (const char* key : {"a/1", "a/2", "a/b/3", "a/b/4", "a/c/5", "b"}) store->put(key, "xx");
  std::vector<std::string> keys;
  for (const ObjectInfo& object : store->list("a/", ObjectStore::Depth::kAll).objects) {
    keys.push_back(object.key);
    EXPECT_EQ(object.bytes, 2u);
  }
  EXPECT_THAT(keys, ElementsAre("a/1", "a/2", "a/b/3", "a/b/4", "a/c/5"));
  there.keys_a_page = 1000;
  const ObjectListing level = store->list("a/", ObjectStore::Depth::kOneLevel);
  EXPECT_THAT(level.objects, SizeIs(2));
  EXPECT_THAT(level.prefixes, ElementsAre("a/b/", "a/c/"));
}

TEST_F(S3Store, APutIfAbsentIsRefusedWhereThereIsOne) {
  store->put("key", "first", ObjectStore::PutIf::kAbsent);
  EXPECT_THROW(store->put("key", "second", ObjectStore::PutIf::kAbsent), AlreadyExistsError);
  EXPECT_EQ(store->get("key", 0, 9), "first");
}

TEST_F(S3Store, OfTwoPutsIfAbsentAtOnceOneSucceeds) {
  for (int round = 0; round < 20; ++round) {
    std::atomic<int> made{0}, refused{0};
    const auto put = [&](const std::string& bytes) {
      try {
        make_s3_store(there.options())->put(str("key ", round), bytes, ObjectStore::PutIf::kAbsent);
        ++made;
      } catch (const AlreadyExistsError&) {
        ++refused;
      }
    };
    std::thread other(put, "other");
    put("this");
    other.join();
    EXPECT_EQ(made, 1);
    EXPECT_EQ(refused, 1);
  }
}

// The object is made, the answer is lost, and the repetition finds the object there.
TEST_F(S3Store, APutIfAbsentWhoseAnswerWasLostIsNotTakenForAnothersObject) {
  bool cut = false;
  there.set_faults([&](const SeenRequest& request) {
    return request.conditional && !std::exchange(cut, true) ? Fault::kCutBeforeAnswer
                                                            : Fault::kNone;
  });
  EXPECT_NO_THROW(store->put("key", "mine", ObjectStore::PutIf::kAbsent));
  EXPECT_EQ(store->get("key", 0, 9), "mine");
}

TEST_F(S3Store, AStoreWithoutConditionalWritesSaysSo) {
  there.set_faults([](const SeenRequest& request) {
    return request.conditional ? Fault::kNotImplemented : Fault::kNone;
  });
  EXPECT_THAT(
      error_of<UnimplementedError>([&] { store->put("key", "x", ObjectStore::PutIf::kAbsent); }),
      HasSubstr("501"));
}

TEST_F(S3Store, ALargeFileGoesInPartsAndIsThereWhenAllAre) {
  const TempFolder folder;
  const std::string bytes = noise(kFileBytes);
  store->put_file("large", file_of(folder, bytes));
  EXPECT_TRUE(there.objects().at("bucket/large") == bytes);
  EXPECT_EQ(there.uploads(), 0u);
  EXPECT_THAT(there.seen(), SizeIs(1 + 4 + 1));
}

// Cut in its middle, before its answer and within its answer: each request of an upload in turn.
TEST_F(S3Store, AnUploadWhoseConnectionsAreCutSendsAgainWhatWasCutAndNoMore) {
  const TempFolder folder;
  const std::string bytes = noise(kFileBytes), path = file_of(folder, bytes);
  for (const Fault fault :
       {Fault::kCutInside, Fault::kCutBeforeAnswer, Fault::kCutInsideAnswer, Fault::kSlowDown})
    for (std::size_t cut = 0; cut < 6; ++cut) {
      there.forget();
      std::size_t request = 0;
      there.set_faults([&](const SeenRequest&) { return request++ == cut ? fault : Fault::kNone; });
      const std::string key = str("large ", static_cast<int>(fault), ' ', cut);
      store->put_file(key, path);
      EXPECT_TRUE(there.objects().at("bucket/" + key) == bytes) << key;
      std::size_t sent = 0;
      for (const SeenRequest& seen : there.seen())
        sent += seen.method == "PUT" ? seen.body_bytes : 0;
      EXPECT_LE(sent, kFileBytes + 100'000) << key << ": more than one part was sent again";
      EXPECT_LE(there.seen().size(), 8u) << key;
    }
}

TEST_F(S3Store, AnyRequestThatIsCutOnceEndsWell) {
  for (const Fault fault :
       {Fault::kCutInside, Fault::kCutBeforeAnswer, Fault::kCutInsideAnswer, Fault::kSlowDown}) {
    there.set_faults([&, odd = false](const SeenRequest& request) mutable {
      odd = !odd;
      // Half of an answer without a body is no answer.
      return odd && !(fault == Fault::kCutInsideAnswer && request.method == "HEAD") ? fault
                                                                                    : Fault::kNone;
    });
    store->put("a/key", noise(5000));
    EXPECT_TRUE(store->get("a/key", 100, 4000) == noise(5000).substr(100, 4000));
    EXPECT_EQ(store->list("a/", ObjectStore::Depth::kAll).objects.size(), 1u);
    EXPECT_EQ(store->size("a/key"), 5000u);
    store->remove("a/key");
    EXPECT_EQ(store->size("a/key"), std::nullopt);
  }
}

TEST_F(S3Store, AStoreThatAlwaysFailsIsNamedAfterTheLastAttempt) {
  there.set_faults([](const SeenRequest&) { return Fault::kSlowDown; });
  const std::string said = error_of<UnknownError>([&] { store->put("key", "x"); });
  EXPECT_THAT(said, HasSubstr("PUT s3://bucket/key at " + there.endpoint()));
  EXPECT_THAT(said, HasSubstr("503 SlowDown: by the double, 6 times"));
  EXPECT_THAT(there.seen(), SizeIs(6));
}

TEST_F(S3Store, AnUploadThatFailsLeavesNoParts) {
  const TempFolder folder;
  there.set_faults([](const SeenRequest& request) {
    return request.target.find("partNumber=2") != std::string::npos ? Fault::kSlowDown
                                                                    : Fault::kNone;
  });
  const std::string path = file_of(folder, noise(kFileBytes));
  EXPECT_THROW(store->put_file("large", path), UnknownError);
  EXPECT_EQ(there.uploads(), 0u);
  EXPECT_THAT(there.objects(), IsEmpty());
}

// As by processes that were killed while they uploaded.
TEST_F(S3Store, UploadsThatNeverEndedAreGivenUpBelowAPrefixAndNoOthers) {
  const TempFolder folder;
  const std::string path = file_of(folder, noise(kFileBytes));
  there.set_faults([](const SeenRequest& request) {
    const bool part = request.target.find("partNumber") != std::string::npos;
    return part || request.method == "DELETE" ? Fault::kNotImplemented : Fault::kNone;
  });
  for (const char* key : {"rows-1/a&b", "rows-1/c", "rows-1/d", "rows-2/a"})
    EXPECT_THROW(store->put_file(key, path), UnknownError);
  there.set_faults(nullptr);
  ASSERT_EQ(there.uploads(), 4u);
  there.keys_a_page = 2;
  EXPECT_EQ(store->abandon_uploads("rows-1"), 3u);
  EXPECT_EQ(there.uploads(), 1u);
  EXPECT_EQ(store->abandon_uploads("rows-1"), 0u);
}

TEST_F(S3Store, ASilentStoreIsGivenUpAfterItsTime) {
  S3Options options = there.options();
  options.attempts = 1;
  there.set_faults([](const SeenRequest&) { return Fault::kNoAnswer; });
  EXPECT_THAT(error_of<UnknownError>([&] { make_s3_store(options)->put("key", "x"); }),
              HasSubstr("AWS_ENDPOINT_URL"));
}

TEST_F(S3Store, WrongCredentialsAreNamedAtOnce) {
  S3Options options = there.options();
  options.credentials.secret_key = "another";
  EXPECT_THAT(error_of<PermissionDeniedError>([&] { make_s3_store(options)->put("key", "x"); }),
              HasSubstr("AWS_SECRET_ACCESS_KEY"));
  EXPECT_THAT(there.seen(), SizeIs(1)) << "no repetition helps";
}

}  // namespace
}  // namespace cairn::storage
