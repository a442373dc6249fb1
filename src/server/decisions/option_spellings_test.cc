#include "server/decisions/option_spellings.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace skein {
namespace {

using Texts = std::vector<std::string>;

TEST(OptionSpellingsTest, FirstLetterSmallAndCapital) {
  EXPECT_EQ(SpellingsOfText("yes"), (Texts{"yes", "Yes"}));
  EXPECT_EQ(SpellingsOfText(" Very good "), (Texts{"Very good", "very good"}));
  EXPECT_EQ(SpellingsOfText("42"), (Texts{"42"}));
  EXPECT_EQ(SpellingsOfText("да"), (Texts{"да"}));
}

TEST(OptionSpellingsTest, YesAndNoOfTheLanguageThatTheQuestionNames) {
  const auto plain = SpellingsOfYesNo("Is it spam?");
  EXPECT_EQ(plain[0], (Texts{"yes", "Yes"}));
  EXPECT_EQ(plain[1], (Texts{"no", "No"}));
  const auto german = SpellingsOfYesNo("Ist das Werbung? Antworte mit ja oder nein.");
  EXPECT_EQ(german[0], (Texts{"yes", "Yes", "ja", "Ja"}));
  EXPECT_EQ(german[1], (Texts{"no", "No", "nein", "Nein"}));
  // A single one of the two words, or a part of another word, does not name a language.
  EXPECT_EQ(SpellingsOfYesNo("ja?")[0], plain[0]);
  EXPECT_EQ(SpellingsOfYesNo("Does the ninja use a neinful word?")[0], plain[0]);
  EXPECT_EQ(SpellingsOfYesNo("垃圾邮件吗？回答是或否。")[0], (Texts{"yes", "Yes", "是"}));
  EXPECT_EQ(SpellingsOfYesNo("ｙｅｓ か ｎｏ")[1], (Texts{"no", "No", "ｎｏ"}));
}

TEST(OptionSpellingsTest, OptionsMustHaveATextAndDiffer) {
  const auto check = [](const Texts& names) {
    DecisionQuestion question;
    question.kind = DecisionKind::kChoice;
    for (const std::string& name : names) question.options.push_back({name, ""});
    return CheckOptionTexts(question);
  };
  EXPECT_TRUE(check({"a", "A", "b"}).ok());
  EXPECT_NE(check({"a", " \t\xC2\xA0\xE2\x80\x8B "}).message().find("option 1"), std::string::npos);
  EXPECT_NE(check({"a", "b", " a\xE3\x80\x80"}).message().find("options 0 and 2"),
            std::string::npos);
}

}  // namespace
}  // namespace skein
