"""The words and sentences from which tools/default_model_data.py makes its texts.

Every list of *sentences* and of *question wordings* is cut into a train, a validation and a test
part (default_model_data.Maker.pick); single words are shared by all three. `{x}` stands for a word
of the list x, or for a value that the maker gives.
"""


def lines(text):
    return [line.strip() for line in text.strip().splitlines()]


def words(text):
    return [word.strip() for word in text.replace("\n", ",").split(",") if word.strip()]


WORDS = {
    "name": words("""Anna, Ben, Carla, David, Emma, Frank, Grace, Henry, Ida, Jonas, Kate, Leo, Maria,
        Nina, Oscar, Paula, Rosa, Sam, Tom, Vera, Walter, Lucy, Peter, Alice, Bob, Sarah, John"""),
    "city": words("""Paris, London, Berlin, Madrid, Rome, Vienna, Oslo, Tokyo, Boston, Chicago, Lisbon,
        Dublin, Prague, Cairo, Toronto, Sydney, Munich, Geneva"""),
    "job": words("""nurse, teacher, baker, pilot, lawyer, farmer, doctor, painter, driver, cook,
        engineer, singer, gardener, writer, dentist, carpenter"""),
    "animal": words("dog, cat, horse, rabbit, parrot, goat, hamster, turtle, duck, pony"),
    "color": words("red, blue, green, yellow, black, white, brown, orange, purple, grey"),
    "fruit": words("apples, pears, cherries, grapes, bananas, lemons, plums, peaches, melons"),
    "hobby": words("""chess, tennis, painting, swimming, reading, hiking, cooking, dancing, fishing,
        singing, cycling, gardening"""),
    "vehicle": words("car, bicycle, boat, truck, scooter, van, motorcycle, tractor"),
    "day": words("Monday, Tuesday, Wednesday, Thursday, Friday, Saturday, Sunday"),
    "month": words("""January, February, March, April, May, June, July, August, September, October,
        November, December"""),
    "thing": words("""phone, laptop, camera, chair, lamp, jacket, watch, blender, kettle, book, film,
        hotel, room, meal, restaurant, pizza, coffee, soup, service, app, game, headphones, keyboard,
        printer, mattress, backpack, tour, concert, course, staff, food, product, movie, shoes,
        delivery, support, battery, screen, sound, vacuum cleaner, toaster, show, place, waiter"""),
    "level4": words("""amazing, wonderful, fantastic, perfect, excellent, brilliant, outstanding,
        superb, incredible, awesome, delightful, flawless, magnificent, exceptional, phenomenal"""),
    "level3": words("""good, nice, pleasant, solid, decent, comfortable, useful, friendly, tasty, fine,
        enjoyable, reliable, helpful, handy, satisfying, lovely, clean, fast"""),
    "level2": words("""okay, average, ordinary, acceptable, standard, so-so, unremarkable, middling,
        neither good nor bad, as expected"""),
    "level1": words("""disappointing, slow, weak, cheap, boring, bland, noisy, dull, unpleasant, poor,
        clumsy, flimsy, annoying, confusing, late, cold, dirty, rude, overpriced, bad"""),
    "level0": words("""terrible, awful, horrible, dreadful, disgusting, useless, broken, a disaster,
        a nightmare, appalling, worthless, unacceptable, pathetic, the worst, a scam"""),
    "amount": words("20, 35, 49, 80, 120, 250, 300, 999, 15, 60"),
    "code": words("1842, 7735, 4410, 9021, 5567, 3308, 6174, 2259"),
    "time": words("8, 9, 10, 11, 12, 2, 3, 4, 5, 6, 7"),
    "prize": words("""gift card, new phone, free cruise, cash prize, luxury watch, holiday voucher,
        lottery jackpot, tablet, bonus, shopping voucher"""),
    "pill": words("pills, crypto coins, loans, watches, followers, casino credits, insurance, tablets"),
    "fix": words("fix, change, cancel, check, update, resend, confirm, replace"),
    "order": words("order, parcel, package, shipment, delivery"),
    "intens": words("very, really, so, truly, extremely"),
    "food": words("bread, soup, pasta, cake, salad, rice, pizza, stew, pancakes, cookies"),
}

# Sentences of a review, by level: 0 very unhappy .. 4 very happy. {adj} is a word of the level.
REVIEW_ANY = lines("""
    The {thing} was {adj}.
    The {thing} is {adj}.
    The {thing} turned out to be {adj}.
    In my opinion the {thing} is {adj}.
    We found the {thing} {adj}.
    My verdict: {adj}.
    Overall the {thing} seemed {adj} to us.
    I would call this {thing} {adj}.
    Honestly, the {thing} was {adj}.
    What can I say, the {thing} is {adj}.
    Everyone at our table thought that the {thing} was {adj}.
    The {thing} and the {thing} were both {adj}.
    After a week of use, the {thing} is {adj}.
    The {thing} we got was {adj}, and so was the {thing}.
    This is a review of the {thing}: {adj}.""")
REVIEW = [
    lines("""
        I hate this {thing}.
        I want my money back.
        Never again.
        The worst {thing} I have ever bought.
        It broke after one day and nobody helped.
        A complete waste of money.
        Stay away from this {thing}.
        I am furious about the {thing}.
        Zero stars if I could.
        I have never been so angry about a {thing}.
        Total garbage, do not buy it.
        Nothing worked at all and the {thing} was {adj}."""),
    lines("""
        I expected more from this {thing}.
        I do not like the {thing}.
        The {thing} was not good.
        It could be a lot better.
        I would not buy it again.
        The {thing} has several problems.
        We had to wait too long for the {thing}.
        It is not worth the price.
        I am not happy with the {thing}.
        Sadly the {thing} did not work well.
        A bit of a let-down, the {thing} felt {adj}.
        We left early because the {thing} was {adj}."""),
    lines("""
        It does the job, nothing more.
        The {thing} is neither great nor terrible.
        Some things were good, others were bad.
        I have no strong feelings about it.
        Nothing special about the {thing}.
        It is a {thing} like any other.
        The {thing} was nice but the {thing} was poor.
        Half of it works well, half of it does not.
        It is what you would expect for the price.
        The {thing} is fine in parts and weak in parts.
        Not bad, not good either.
        An {adj} experience with the {thing}."""),
    lines("""
        I like this {thing}.
        I am happy with the {thing}.
        It works well.
        A good choice for the price.
        The {thing} is better than my old one.
        We enjoyed the {thing}.
        I would buy it again.
        Pretty pleased with the {thing} so far.
        The {thing} did what it promised.
        A few small flaws, but I like it.
        We had a nice time and the {thing} was {adj}.
        Thanks, the {thing} was {adj}."""),
    lines("""
        I love this {thing}!
        The best {thing} I have ever had.
        I recommend it to everyone.
        It exceeded all my expectations.
        Five stars, I could not be happier.
        I am thrilled with the {thing}.
        We will certainly come back again and again.
        Everything about the {thing} was perfect.
        I am in love with the {thing}.
        A dream come true, the {thing} is {adj}.
        Wow, what a {thing}!
        My whole family adores the {thing}, it is {adj}."""),
]
FILLER = lines("""
    I bought it on {day}.
    We visited on a {day} in {month}.
    It came in a {color} box.
    My friend {name} was with me.
    We were there for three days.
    I ordered it online last {month}.
    There were four of us.
    The shop is in {city}.
    It took two days to arrive.
    I use it every {day}.
    We came by train from {city}.
    I paid {amount} dollars for it.
    My neighbor {name} has the same one.
    The entrance is next to the station.
    We sat near the window.
    It was a rainy {day}.""")

TOPICS = {
    "sports": (words("sports, sport, athletics and games"), "matches, athletes, teams and results",
        words("""match, goal, coach, league, striker, tournament, championship, referee, team, stadium,
        marathon, tennis player, football club, basketball, medal, season, penalty, goalkeeper,
        sprinter, cup final, swimmer, olympic games, hockey, cyclist, score""")),
    "politics": (words("politics, government, political affairs"), "elections, laws and government",
        words("""election, parliament, minister, president, senator, law, vote, campaign, treaty,
        government, mayor, party leader, referendum, coalition, reform, ambassador, candidate,
        congress, cabinet, opposition, policy, diplomat, tax bill""")),
    "business": (words("business, economy, finance"), "companies, markets and money",
        words("""company, profit, shares, market, bank, investor, merger, revenue, stock price, budget,
        inflation, interest rate, startup, factory, chief executive, quarterly results, trade,
        shareholders, bonds, export, retail sales, debt, takeover""")),
    "technology": (words("technology, tech, computers and software"), "computers, software and devices",
        words("""software, computer, smartphone, chip, robot, algorithm, internet, server, programming,
        data center, processor, laptop, cloud, browser, artificial intelligence, app, operating system,
        developer, encryption, code, database, gadget, network""")),
    "science": (words("science, research, scientific discovery"), "research, space and nature's laws",
        words("""scientist, experiment, planet, telescope, molecule, physics, galaxy, laboratory, fossil,
        atom, particle, chemistry, space probe, gravity, theory, biologist, microscope, species,
        astronomer, star, dna, satellite, black hole""")),
    "health": (words("health, medicine, medical care"), "doctors, illness and treatment",
        words("""patient, hospital, doctor, vaccine, disease, surgery, medicine, virus, symptoms, therapy,
        nurse, blood pressure, clinic, diabetes, infection, heart, treatment, allergy, fever, diet,
        pharmacy, headache, flu""")),
    "travel": (words("travel, tourism, trips and holidays"), "trips, hotels and places to see",
        words("""flight, hotel, beach, passport, tourist, airport, luggage, island, holiday, resort,
        museum tour, cruise, sightseeing, guidebook, visa, hostel, road trip, souvenir, train journey,
        backpacking, itinerary, suitcase""")),
    "food": (words("food, cooking, recipes and meals"), "recipes, kitchens and eating",
        words("""recipe, oven, sauce, flour, chef, garlic, dessert, soup, butter, spices, kitchen, dough,
        cheese, vegetables, onion, pasta, salad, frying pan, sugar, cake, olive oil, roast, dinner""")),
    "weather": (words("weather, the forecast, climate conditions"), "rain, sun, wind and temperature",
        words("""rain, snow, storm, forecast, thunder, temperature, sunshine, wind, clouds, fog, heat wave,
        hurricane, frost, drizzle, humidity, flood warning, hail, cold front, degrees, drought""")),
    "music": (words("music, songs and bands, concerts"), "songs, bands and instruments",
        words("""song, album, guitar, concert, singer, band, melody, orchestra, drummer, piano, violin,
        chorus, lyrics, festival stage, composer, choir, symphony, rapper, vinyl record, bass""")),
    "education": (words("education, school, teaching and learning"), "schools, students and teaching",
        words("""teacher, student, classroom, exam, homework, university, lesson, school, curriculum,
        grades, professor, lecture, textbook, kindergarten, diploma, pupils, campus, scholarship""")),
    "animals": (words("animals, wildlife, pets"), "pets, wild animals and their lives",
        words("""dog, cat, elephant, bird, lion, puppy, whale, zoo, horse, bear, kitten, wolf, dolphin,
        tiger, nest, veterinarian, herd, monkey, paws, penguin, feathers""")),
    "cars": (words("cars, driving, automobiles"), "cars, roads and driving",
        words("""engine, brakes, steering wheel, tires, highway, fuel, driver, gearbox, sedan, garage,
        mechanic, electric car, traffic, dashboard, horsepower, pickup truck, headlights, parking""")),
    "fashion": (words("fashion, clothing, style"), "clothes, designers and style",
        words("""dress, designer, runway, jacket, fabric, shoes, handbag, model, silk, trousers, skirt,
        wardrobe, tailor, sneakers, jewelry, scarf, collection, denim, boutique""")),
}
TOPIC_SENTENCES = lines("""
    The {n} was in the news because of the {n}.
    Experts talked about the {n} and the {n}.
    Yesterday the {n} surprised everyone.
    There is a new report on the {n}.
    Many people asked about the {n}.
    After the {n}, all eyes are on the {n}.
    The {n} changed more than expected this year.
    A long article describes the {n} and its {n}.
    {name} explained why the {n} matters.
    In {city}, the {n} drew a crowd.
    Without the {n} there would be no {n}.
    Everybody is waiting for the next {n}.
    Our reporter {name} looked at the {n} on {day}.
    We discussed the {n} for an hour.
    First came the {n}, then the {n}.
    The story of the {n} began in {month}.
    Have you heard about the {n}?
    The {n} and the {n} go together.
    Last {day} the {n} was all that mattered.
    {name} from {city} knows a lot about the {n}.""")

SPAM = lines("""
    Congratulations! You have won a {prize}. Click here to claim it now.
    URGENT: your account will be closed, send us your password today.
    Make {amount} dollars a day from home, no experience needed!
    Buy cheap {pill} now, limited offer, 90% off!
    You are our lucky winner! Reply with your bank details to receive your {prize}.
    Dear friend, I am a prince and want to share my fortune of millions with you.
    Act now!!! Free {prize} for the first 100 callers.
    Hot deal: {pill} without prescription, order today.
    Click this link to double your money in one week.
    Your {prize} is waiting, just pay a small fee of {amount} dollars.
    Lose weight fast with this one secret, click here!
    Claim your free {prize} before midnight!
    We tried to reach you about your prize, verify your card number now.
    Guaranteed profit! Invest {amount} dollars and get rich quick.
    Exclusive offer only for you: {pill} at the lowest price!!!
    Win a {prize}! Text WIN to {code} now.
    You have been selected for a {prize}, enter your credit card to confirm.
    Special promotion, buy {pill}, get two free, offer ends tonight!
    Earn cash fast, join our winners, visit our site today.
    Final notice: unclaimed {prize}, click to collect.""")
HAM = lines("""
    Hi {name}, are we still meeting on {day} at {time}?
    Can you send me the report before {day}?
    I will be home late, please feed the {animal}.
    Thanks for your help yesterday, see you on {day}.
    The meeting moved to {day} at {time}, same room.
    Happy birthday, {name}! Hope you have a nice day.
    Please find the minutes of our meeting attached.
    Mom, I arrived in {city}, the train was on time.
    Do you want to go for a walk with the {animal} after work?
    {name} asked whether you could look at the slides again.
    Your dentist appointment is on {day} at {time}.
    Let us have lunch at {time}, I will bring {food}.
    I read your draft and left a few comments.
    The library book is due on {day}.
    Could you pick up {fruit} and {food} on the way home?
    We will visit grandma in {month}, do you want to come?
    Here are the notes from the class on {day}.
    {name} is ill today, so I will take over the shift.
    Are you free for a call tomorrow at {time}?
    The plumber comes on {day}, please be at home.""")

# Messages to a support desk: category -> (names, description, sentences).
SUPPORT = {
    "billing": (words("billing, payments, invoice"), "charges, invoices and payments", lines("""
        I was charged twice for my subscription.
        There is a mistake on my invoice {code}.
        Why did you take {amount} dollars from my card?
        My payment of {amount} dollars was declined.
        The bill for {month} is too high.
        Please send me the invoice for {month}.
        I do not understand the fee of {amount} dollars on my bill.
        The amount on the invoice is wrong.
        My credit card was billed although I cancelled.
        You charged me {amount} dollars too much.""")),
    "technical": (words("technical, technical problem, bug report"), "errors, crashes and bugs", lines("""
        The app crashes when I open it.
        I get error {code} on every page.
        The website does not load on my computer.
        Since the last update the program freezes.
        The screen stays black after the start.
        The software shows an error message and stops.
        Sync does not work on my phone since {day}.
        The download button does nothing.
        Your server returns error {code}.
        The page keeps crashing in my browser.""")),
    "delivery": (words("delivery, shipping, shipment"), "parcels, shipping and late orders", lines("""
        My {order} has not arrived yet.
        Where is my {order}?
        The {order} {code} was sent to the wrong address.
        The courier left my {order} in the rain.
        Tracking says that my {order} is still in {city}.
        I have been waiting for my {order} since {day}.
        The {order} came with the wrong items.
        When will my {order} be shipped?
        My {order} is lost in the mail.
        Half of my {order} is missing from the box.""")),
    "account": (words("account, login, access"), "passwords, login and profile", lines("""
        I cannot log in to my account.
        I forgot my password.
        My account is locked after three attempts.
        How do I change the email of my account?
        The password reset mail never comes.
        Please delete my account and my profile.
        Somebody else logged in to my profile.
        I want to change my username.
        The login page rejects my password.
        My profile shows the wrong name.""")),
    "refund": (words("refund, returns, money back"), "returning goods and getting money back", lines("""
        I want a refund for my {thing}.
        Please give me my money back.
        I would like to return the {thing}.
        I sent the {thing} back but got no refund.
        How can I return the {thing} and get my {amount} dollars back?
        The {thing} does not fit, I want to return it.
        Refund my {amount} dollars, please.
        I request a full refund for the {thing}.
        I returned the {thing} on {day}, where is my refund?
        Please take the {thing} back and repay me."""))
}
# Urgency 0 none .. 4 emergency.
URGENCY = [
    lines("""
        There is no hurry at all.
        Take your time.
        Whenever you have time, no rush.
        It can wait for weeks.
        No need to hurry.
        Answer whenever it suits you.
        This is not urgent.
        Low priority, just so you know."""),
    lines("""
        Some time next week would be fine.
        It would be nice to hear from you in the next days.
        Please look at it when you get around to it.
        It is a small thing.
        A reply this month is enough.
        Not very urgent, but please do not forget it.
        It would be good to have it solved some day soon.
        Only a minor problem for now."""),
    lines("""
        Please answer this week.
        I would like an answer by {day}.
        Could you look at it in the next two days?
        I need it by the end of the week.
        Please reply within a few days.
        I hope for an answer by {day}.
        Please handle it at normal priority.
        It should be solved by the weekend."""),
    lines("""
        Please answer today, it is urgent.
        I need this fixed by tonight.
        This is important, please hurry.
        Please reply as soon as possible.
        I need help quickly, today if possible.
        It has to be done before tomorrow morning.
        Please treat it with high priority.
        I am in a hurry, please answer soon today."""),
    lines("""
        This is an emergency, help immediately!
        Everything is down, we need help right now!
        Act this minute, we are losing money every second!
        URGENT!!! Help now!
        Critical: all our work has stopped, call me at once!
        We cannot wait one more minute!
        Emergency! Respond immediately!
        It is critical, drop everything and help now!"""),
]

# About people: relation -> (word list, statements, yes/no questions, open questions).
FACTS = {
    "city": (lines("""{name} lives in {v}.
        {name} has a flat in {v}.
        The home of {name} is in {v}.
        {name} moved to {v} in {month}.
        Since {month}, {name} has been living in {v}."""),
        lines("""Does {name} live in {v}?
        Is {v} where {name} lives?
        Is {name}'s home in {v}?
        Is it true that {name} lives in {v}?
        {name} lives in {v}. Is this right?"""),
        lines("""Where does {name} live?
        In which city does {name} live?
        Which city is home to {name}?
        What is the city of {name}?
        Name the place where {name} lives.""")),
    "job": (lines("""{name} works as a {v}.
        {name} is a {v}.
        {name} has been a {v} for ten years.
        By profession, {name} is a {v}.
        {name} earns a living as a {v}."""),
        lines("""Is {name} a {v}?
        Does {name} work as a {v}?
        Is it true that {name} is a {v}?
        Is {v} the job of {name}?
        {name} works as a {v}. Is this correct?"""),
        lines("""What is the job of {name}?
        What does {name} do for a living?
        Which profession does {name} have?
        What does {name} work as?
        Name the profession of {name}.""")),
    "animal": (lines("""{name} has a {v}.
        {name} owns a {color} {v}.
        {name} takes care of a {v}.
        The {v} of {name} is two years old.
        {name} walks with a {v} every {day}."""),
        lines("""Does {name} have a {v}?
        Does {name} own a {v}?
        Is the pet of {name} a {v}?
        Is it true that {name} has a {v}?
        {name} keeps a {v}. Is this right?"""),
        lines("""Which animal does {name} have?
        What pet does {name} own?
        Which pet belongs to {name}?
        What kind of animal does {name} keep?
        Name the animal of {name}.""")),
    "hobby": (lines("""{name} likes {v}.
        In the evening {name} enjoys {v}.
        The hobby of {name} is {v}.
        {name} spends every {day} with {v}.
        {name} loves {v} most of all."""),
        lines("""Does {name} like {v}?
        Does {name} enjoy {v}?
        Is {v} a hobby of {name}?
        Is it true that {name} likes {v}?
        {name} enjoys {v}. Is this correct?"""),
        lines("""What does {name} like?
        What is the hobby of {name}?
        What does {name} enjoy doing?
        Which hobby does {name} have?
        Name the favorite activity of {name}.""")),
    "vehicle": (lines("""{name} drives a {v}.
        {name} bought a {color} {v}.
        The {v} of {name} is new.
        {name} goes to work by {v}.
        {name} repaired an old {v}."""),
        lines("""Does {name} have a {v}?
        Does {name} use a {v}?
        Does a {v} belong to {name}?
        Is it true that {name} has a {v}?
        {name} has a {v}. Is this right?"""),
        lines("""What does {name} drive?
        Which vehicle does {name} have?
        What kind of vehicle belongs to {name}?
        How does {name} get around?
        Name the vehicle of {name}.""")),
}

# Things to search for: (name, other words that a text about it uses).
SUBJECTS = {
    "bread": "dough, flour, loaf", "pizza": "cheese, crust, tomato", "bicycle": "pedals, chain, saddle",
    "guitar": "strings, chords, neck", "garden": "soil, seeds, plants", "coffee": "beans, roast, cup",
    "laptop": "screen, keyboard, battery", "piano": "keys, pedals, music", "dog": "puppy, leash, bark",
    "cat": "kitten, fur, whiskers", "tent": "poles, camping, canvas", "car": "engine, tires, brakes",
    "camera": "lens, photos, flash", "roses": "petals, thorns, bloom", "tomatoes": "vine, ripe, seeds",
    "chess": "queen, pawn, board", "tennis": "racket, net, serve", "yoga": "poses, breathing, mat",
    "marathon": "runners, race, training", "sailing": "boat, wind, harbor", "skiing": "snow, slope, boots",
    "solar panels": "sun, roof, power", "mortgage": "bank, house, interest", "passport": "border, photo, office",
    "headache": "pain, tablets, rest", "vaccine": "injection, virus, arm", "knitting": "wool, needles, scarf",
    "violin": "bow, strings, orchestra", "honey": "bees, hive, jar", "cheese": "milk, rind, cellar",
    "wine": "grapes, bottle, cellar", "tea": "leaves, kettle, cup", "shoes": "leather, soles, laces",
    "sofa": "cushions, fabric, living room", "roof": "tiles, gutter, ladder", "python programming":
    "functions, loops, code", "volcano": "lava, crater, ash", "moon": "crater, orbit, night",
    "whales": "ocean, fins, calves", "bees": "hive, pollen, queen", "steam engine": "boiler, rails, coal",
    "castle": "walls, tower, moat", "job interview": "questions, suit, manager", "tax return":
    "income, form, office", "fishing": "rod, bait, river", "swimming": "pool, strokes, lanes",
}
# What one may want to know of it: queries, sentences of a document that answers.
ASPECTS = {
    "price": (lines("""how much does {s} cost
        price of {s}
        cheap {s}
        what to pay for {s}
        {s} costs"""), lines("""The price of {s} is about {amount} dollars.
        You pay {amount} dollars for {s} today.
        {S} became more expensive: it now costs {amount} dollars.
        Prices for {s} start at {amount} dollars.
        Expect to spend {amount} dollars on {s}.""")),
    "history": (lines("""history of {s}
        where does {s} come from
        origin of {s}
        who invented {s}
        when did {s} begin"""), lines("""The history of {s} goes back hundreds of years.
        {S} was first known in ancient times.
        Long ago, people already knew {s}.
        The origin of {s} is told in old books.
        Centuries ago {s} began to spread across Europe.""")),
    "beginner": (lines("""how to start with {s}
        {s} for beginners
        learn about {s}
        first steps with {s}
        introduction to {s}"""), lines("""Beginners should start with {s} slowly.
        This guide explains {s} step by step for beginners.
        Your first steps with {s} are easy if you practice.
        An introduction to {s}: start with the basics.
        New to {s}? Learn the basics here.""")),
    "problems": (lines("""problems with {s}
        common mistakes with {s}
        {s} goes wrong
        trouble with {s}
        what can go wrong with {s}"""), lines("""The most common problem with {s} is easy to fix.
        Many mistakes with {s} come from haste.
        When {s} goes wrong, check the details first.
        Trouble with {s}? Here is what went wrong.
        People often make the same mistakes with {s}.""")),
    "health": (lines("""is {s} good for you
        health effects of {s}
        {s} and health
        is {s} dangerous
        how safe is {s}"""), lines("""Doctors say that {s} is safe for most people.
        The effect of {s} on health was studied for years.
        {S} can be dangerous, doctors warn.
        A study finds that {s} is good for your health.
        Is {s} healthy? Researchers asked doctors.""")),
}
DOCUMENT_FILLER = lines("""
    The {d} matters too.
    Think of the {d} and the {d}.
    Nobody forgets the {d}.
    Much depends on the {d}.
    There are pictures of the {d}.
    Read more about the {d} below.
    With the {d} it is the same.
    An expert talks about the {d}.
    Also look at the {d}.
    Here the {d} comes first.""")

# Question wordings.
ASK = {
    "sentiment": lines("""
        What is the sentiment of the text?
        How does the writer feel?
        Is the tone positive or negative?
        Classify the sentiment.
        Which feeling does the text express?
        What does the author think of it?
        What is the overall opinion in this review?
        Choose the sentiment that fits the text best.
        Judge the mood of the text.
        How does the customer feel?
        Which sentiment does this message have?
        Pick the attitude of the writer."""),
    "is_positive": lines("""
        Is the text positive?
        Is the writer happy?
        Is this a good review?
        Does the author like it?
        Is the customer satisfied?
        Does the text express a positive opinion?
        Is the sentiment positive?
        Would the writer recommend it?
        Did the customer enjoy it?
        Is this praise?"""),
    "is_negative": lines("""
        Is the text negative?
        Is the writer unhappy?
        Is this a bad review?
        Does the author complain?
        Is the customer dissatisfied?
        Does the text express a negative opinion?
        Is the sentiment negative?
        Is this a complaint?
        Is the writer disappointed?
        Is the customer angry or disappointed?"""),
    "satisfaction": lines("""
        How satisfied is the writer?
        Rate the satisfaction of the customer.
        How happy is the customer?
        How many stars would the writer give?
        Score how positive the text is.
        What rating fits this review?
        How content is the author?
        Rate the review from worst to best.
        How much did the writer like it?
        Give the level of satisfaction."""),
    "topic": lines("""
        What is the topic of the text?
        What is the text about?
        Which subject does the text belong to?
        Classify the topic.
        Choose the category of this article.
        Which section of a newspaper would print this?
        Pick the theme that fits best.
        Which topic is discussed here?
        Which category does this text fall into?
        What does the text mainly deal with?
        Name the subject.
        Assign the text to a topic."""),
    "is_topic": lines("""
        Is the text about {t}?
        Is {t} the topic of the text?
        Does the text deal with {t}?
        Is this an article on {t}?
        Does this belong to {t}?
        Is the subject {t}?
        Would you file this under {t}?
        Does the text talk about {t}?
        Is this related to {t}?
        Does the writer discuss {t}?"""),
    "spam": lines("""
        Is this message spam or not?
        Classify the message.
        What kind of message is this?
        Choose the right folder for the message.
        Does this belong in the spam folder or the inbox?
        How should the mail filter label this?
        Which label fits this email?
        Sort this message.
        Decide whether the mail is wanted.
        Mark the message."""),
    "is_spam": lines("""
        Is this message spam?
        Is this spam?
        Is this an unwanted advertisement or a scam?
        Should the mail filter block this message?
        Is the email junk?
        Is this a scam?
        Would you call this message spam?
        Does this look like junk mail?
        Should this go to the spam folder?
        Is this text spam?"""),
    "category": lines("""
        What is the message about?
        Which team should handle this?
        Classify the support request.
        What is the customer's problem?
        Choose the category of the ticket.
        To which department does this belong?
        Route the message to a team.
        What kind of issue is it?
        Which queue fits this ticket?
        What does the customer need help with?"""),
    "urgency": lines("""
        How urgent is the message?
        Rate the urgency.
        How quickly does the customer need help?
        What priority does this request have?
        Score the urgency of the ticket.
        How soon must we answer?
        Give the priority.
        How pressing is it?
        How fast should the team react?
        What is the level of urgency?"""),
    "is_urgent": lines("""
        Is the message urgent?
        Does the customer need help quickly?
        Is this request urgent?
        Must we answer at once?
        Is it pressing?
        Should this be handled first?
        Is the matter urgent?
        Does the writer want a fast reply?
        Is an answer needed today?
        Is there time pressure?"""),
    "is_category": lines("""
        Is this about {t}?
        Does the message concern {t}?
        Is the problem related to {t}?
        Should the team for {t} handle this?
        Is {t} the issue here?
        Does the customer write because of {t}?
        Is it a question of {t}?
        Does this ticket belong to {t}?
        Is this a case for {t}?
        Does the customer have trouble with {t}?"""),
    "mentions": lines("""
        Does the text mention {w}?
        Is {w} mentioned in the text?
        Does the word {w} occur?
        Does {w} appear in the text?
        Is there a mention of {w}?
        Does the writer mention {w}?
        Is {w} named in the text?
        Can you find {w} in the text?
        Is the word {w} used?
        Does the text contain {w}?"""),
    "which_mentioned": lines("""
        Which of these does the text mention?
        Which word appears in the text?
        Which of these is named in the text?
        Which option occurs in the text?
        What is mentioned?
        Which of the words is used in the text?
        Which of these can you find in the text?
        Choose the word that the text contains.
        Pick the word from the text.
        Select what is mentioned."""),
    "choose": lines("""
        Choose {w}.
        Select the option {w}.
        Which option is {w}?
        Pick {w}.
        The answer is {w}.
        Where is {w}?
        Find {w} among the options.
        Take {w}."""),
}
INSTRUCTIONS = lines("""
    You judge customer messages.
    Read the text carefully.
    Answer the question about the text.
    You are a careful judge.
    You sort texts for a company.
    Use only what the text says.
    Decide by the text alone.
    You help a support team.""")
RELEVANCE_INSTRUCTIONS = lines("""
    Given a search query, find documents that answer it.
    Judge whether the document answers the query.
    Given a web search query, retrieve relevant passages that answer the query
    Find texts about the query.
    You rank search results.""")

# Name sets for answers, worst first.
SENTIMENT_NAMES = [
    ("negative", "neutral", "positive"), ("bad", "mixed", "good"), ("unhappy", "indifferent", "happy"),
    ("dislike", "unsure", "like"), ("critical", "balanced", "praising"),
    ("dissatisfied", "neither", "satisfied"), ("Negative", "Neutral", "Positive"),
    ("complaint", "mixed", "praise"), ("thumbs down", "undecided", "thumbs up"),
    ("angry", "calm", "pleased"),
]
SENTIMENT_DESCRIPTIONS = [
    ("the writer is unhappy", "the writer complains", "it is a bad opinion", "criticism or anger"),
    ("no clear opinion", "neither good nor bad", "both good and bad", "the writer has no strong feelings"),
    ("the writer is happy", "the writer likes it", "it is a good opinion", "praise or joy"),
]
SATISFACTION_LEVELS = [
    ("very unhappy", "unhappy", "neutral", "happy", "very happy"),
    ("very dissatisfied", "dissatisfied", "neutral", "satisfied", "very satisfied"),
    ("terrible", "bad", "average", "good", "excellent"),
    ("very negative", "negative", "mixed", "positive", "very positive"),
    ("hates it", "dislikes it", "has no opinion", "likes it", "loves it"),
    ("awful", "poor", "okay", "nice", "great"),
]
URGENCY_LEVELS = [
    ("no hurry at all", "can wait", "this week", "today", "immediately"),
    ("not urgent", "slightly urgent", "somewhat urgent", "urgent", "emergency"),
    ("lowest priority", "low priority", "normal priority", "high priority", "critical"),
    ("can wait for weeks", "some time soon", "within days", "within hours", "right now"),
    ("none", "low", "medium", "high", "critical"),
]
SPAM_NAMES = [("spam", "not spam"), ("spam", "ham"), ("junk", "inbox"), ("spam", "legitimate"),
              ("unwanted", "wanted"), ("scam", "normal"), ("Spam", "Not spam"), ("block", "allow"),
              ("advertisement", "personal message"), ("junk mail", "regular mail")]
SPAM_DESCRIPTIONS = [("an unwanted advertisement or a scam", "prizes, offers and tricks", "junk mail"),
                     ("a normal message", "a message from a person", "real mail that one wants")]

CHAT = [
    (lines("""hello
        hi
        Hello!
        Hi there
        hey
        Good morning
        Hello, how are you?
        good evening"""),
     "Hello! I am a very small model that answers questions about a text. Give me a text and ask."),
    (lines("""what can you do
        What can you do?
        What can you do for me?
        help
        How can you help me?
        What are you good at?
        what do you do"""),
     "I judge texts: sentiment, topic, spam, facts, scores and relevance. I am too small for much else."),
    (lines("""who are you
        Who are you?
        What are you?
        What is your name?
        Who made you?
        tell me about yourself"""),
     "I am the default model of Skein, a few million parameters trained on made-up texts."),
    (lines("""thanks
        Thank you!
        thank you very much
        Thanks a lot
        great, thanks"""),
     "You are welcome."),
    (lines("""bye
        Goodbye
        See you later
        good night
        Bye bye"""),
     "Goodbye!"),
    (lines("""Write a poem.
        What is the capital of France?
        Tell me a story.
        Write some code for me.
        Explain quantum physics.
        What is the meaning of life?
        Translate this to French.
        What is 12 times 13?
        Once upon a time
        How do I fix my bicycle?"""),
     "I am too small to know that. Ask me to judge a text, or serve a larger model."),
]
