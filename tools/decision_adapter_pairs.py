"""Own texts with questions, ratings, queries and chat messages for tools/train_decision_adapter.py."""
from default_model_words import lines

# Levels of urgency, lowest first.
URGENCY = [
    lines("""
        Just a thought for some later version: a dark mode would be nice.
        No rush at all, I only wonder whether you sell spare straps.
        Whenever somebody has a spare moment, the logo on page 9 is a bit blurred.
        I noticed a typo on the about page, thought I'd mention it.
        For next year's catalogue you might want a bigger font.
        Could you add me to the newsletter at some point?
        Small wish: let me sort the list by colour some day.
        Not important, but the chair squeaks now and then.
        Feel free to answer after your holidays.
        Is there a museum of your old models? Just curious.
        A minor thing: the button is two shades of green.
        When you happen to pass by, the hall could use new paint.""") ,
    lines("""
        I'd be glad to hear from you some time next week.
        Please correct the address before the next bill goes out at the end of the month.
        One of our four printers is jammed, we use the others meanwhile.
        The report is slow since the update, it takes a minute instead of ten seconds.
        Could you send the quote in the coming days?
        The tap drips, we put a bucket under it for now.
        I need the certificate for a meeting next Thursday.
        Two users cannot see the new menu; they can work, though.
        Please order new toner, this one will last until Friday or so.
        The order is a day late, could you have a look?
        My licence expires in ten days, how do I renew it?
        Our heating makes a strange noise, can somebody come this week?"""),
    lines("""
        The whole shop is offline and customers are standing at the till.
        Water is running through the ceiling onto the server rack!
        We cannot ship a single order until this is fixed, please call me now.
        My insulin has not arrived and I have two doses left.
        Somebody is emptying my account at this very moment, block it!
        The lift is stuck between floors with two people in it.
        My flight leaves in an hour and the ticket is not in the app!
        It smells of gas in the stairwell, send someone at once.
        All patient records have vanished and the ward round starts in minutes.
        The site is down in the middle of our launch, we lose thousands every minute.
        Help, the alarm is ringing and the doors won't open.
        I need an answer within the hour or we lose the contract."""),
]
URGENCY_NAMES = [("low", "medium", "high"), ("not urgent", "somewhat urgent", "very urgent"),
                 ("can wait", "this week", "right now"), ("low priority", "normal priority", "high priority"),
                 ("no hurry", "soon", "immediately"), ("minor", "normal", "critical")]
URGENCY_DESCRIPTIONS = ("there is no time pressure", "should be solved in the coming days",
                        "must be solved at once")

# Ratings of one to five stars, worst first.
STARS = [
    lines("""
        It leaked on the first day, the shop refused to help, and now it is in the bin.
        Cold food, dirty forks and a bill for things we never ordered. Never again.
        Do not stay here. Cockroaches in the shower and no refund.
        A fraud. The picture shows leather and you get cardboard.
        The drill smoked, sparked and died within the hour.
        I would give zero stars if I could, a total waste of an evening.
        Broke twice, replaced twice, broke again. Rubbish.
        The dentist hurt me, laughed and charged double.
        Worst customer service of my life, avoid this company.
        The tent tore in the first breeze and we slept in the car."""),
    lines("""
        It sort of works, but the app is a pain and the battery dies by noon.
        The view is fine, shame about the noise, the stains and the price.
        Expected better for the money. The zip sticks and the colour has faded.
        Slow service and lukewarm soup, although the bread was all right.
        The plot drags, the jokes fall flat, one good song.
        Two of the five lessons were useful, the rest was filler.
        Flimsy handle and a blunt blade. I'll probably return it.
        Staff were polite but the room smelled and the wifi never worked.
        A weak sequel, I looked at my watch a lot.
        Uncomfortable after an hour. Looks nice at least."""),
    lines("""
        Does what it should, nothing more and nothing less.
        Good food, bad service, so it evens out.
        It's okay for the price. I've had better and I've had worse.
        Some chapters are gripping, others put me to sleep.
        The bed was fine, the breakfast average.
        A decent printer for forms, not for photos.
        Nice idea, mediocre execution.
        Works most of the time. Setup was a bother.
        Neither impressed nor annoyed.
        The first half is great, the second half is not."""),
    lines("""
        Very nice headphones, only the case feels cheap.
        We enjoyed our stay and would come back, though parking is tight.
        Solid tool, good grip, a bit heavy.
        Tasty pizza and quick delivery, could be a little hotter.
        A warm, funny film that runs ten minutes too long.
        Pleased with it so far. The manual could be clearer.
        Friendly guide and a good tour, just a few too many shops.
        The course helped me a lot, I only missed more exercises.
        Comfortable shoes, they run half a size small.
        Reliable and quiet, the light is slightly too bright."""),
    lines("""
        Best kettle I have ever owned, I bought one for my mother too.
        Perfect from start to finish, we did not want to leave.
        I read it in one night and cried at the end. A masterpiece.
        Ten years old, used daily, still like new. Worth every penny.
        The staff moved mountains for us. Absolutely wonderful.
        Flawless sound, beautiful build, unbeatable price.
        The finest ramen outside Japan, go there today!
        My back pain is gone. This mattress changed my life.
        Exceeded everything I hoped for, five stars without a doubt.
        Our kids talk about the farm every single day, magical."""),
]
STAR_NAMES = [("1 star", "2 stars", "3 stars", "4 stars", "5 stars"),
              ("one star", "two stars", "three stars", "four stars", "five stars"),
              ("terrible", "poor", "average", "good", "excellent"),
              ("very bad", "bad", "okay", "good", "very good"),
              ("very negative", "negative", "neutral", "positive", "very positive"),
              ("1", "2", "3", "4", "5"), ("0", "1", "2", "3", "4")]
STAR_DESCRIPTIONS = [("terrible", "bad", "average", "good", "excellent"),
                     ("hated it", "disliked it", "neither", "liked it", "loved it"),
                     ("very unhappy", "unhappy", "mixed", "happy", "very happy")]

# Each: text | true questions | false questions, the questions apart by ";".
FACTS = [[part.strip() for part in line.split("|")] for line in lines("""
    The ferry leaves the island at 7:40 and reaches the mainland two hours later. Bicycles travel free. | Do bicycles travel free of charge?; Does the ferry leave in the morning?; Does the crossing take two hours? | Does the ferry leave at 8:40?; Do passengers pay extra for a bicycle?; Does the crossing take one hour?
    Mr Okafor sold the bakery to his niece in 2015 and moved to Leeds. | Did Mr Okafor sell the bakery?; Does the bakery belong to his niece now?; Did he move to Leeds? | Did the niece sell the bakery to Mr Okafor?; Did Mr Okafor stay at the bakery?; Was the bakery sold in 2005?
    The museum is open daily except Monday. Children under six enter free, others pay half. | Is the museum closed on Mondays?; Does a child of four enter free?; Is the museum open on Sunday? | Is the museum open on Mondays?; Do all children enter free?; Is it closed at weekends?
    Of the twelve applicants, nine came to the interview and two were hired. | Were two applicants hired?; Did nine applicants come to the interview?; Did some applicants stay away? | Did all applicants come to the interview?; Were nine applicants hired?; Were there twenty applicants?
    The bridge was closed after the flood and will not reopen before June. | Is the bridge closed?; Was there a flood?; Will the bridge stay closed until June at least? | Is the bridge open now?; Will the bridge reopen in April?; Did a fire close the bridge?
    Although the forecast promised rain, the concert stayed dry and four thousand people came. | Did the concert stay dry?; Was rain forecast?; Did thousands of people come? | Did it rain during the concert?; Was the concert cancelled?; Did four hundred people come?
    Lena's train was late, so her brother opened the shop alone. | Was the train late?; Did the brother open the shop?; Is Lena someone's sister? | Did Lena open the shop?; Was the train on time?; Did they open the shop together?
    The soup contains celery and cream, but no nuts and no gluten. | Does the soup contain celery?; Is there cream in the soup?; Is the soup free of nuts? | Does the soup contain nuts?; Is the soup free of cream?; Is there gluten in the soup?
    Only members may use the sauna; the pool is open to everyone. | Is the pool open to everyone?; Must one be a member to use the sauna?; Can guests use the pool? | May guests use the sauna?; Is the pool for members only?; Is the sauna open to everyone?
    The phone has a 5-inch screen, two cameras and a battery that can be replaced. It has no headphone socket. | Can the battery be replaced?; Does the phone have two cameras?; Is the headphone socket missing? | Does the phone have a headphone socket?; Is the battery fixed?; Does it have three cameras?
    Ravi is older than Tom, and Tom is older than Mia. | Is Ravi older than Tom?; Is Mia the youngest?; Is Tom older than Mia? | Is Mia older than Tom?; Is Tom the oldest?; Is Ravi the youngest?
    The council voted seven to four against the new car park. | Did the council reject the car park?; Did four members vote for it?; Was there a vote? | Did the council approve the car park?; Did a majority vote for the car park?; Was the vote unanimous?
    Nobody was hurt when the crane fell onto the empty hall on Sunday night. | Was the hall empty?; Did a crane fall?; Did it happen on a Sunday? | Was anybody hurt?; Did the crane fall on Monday?; Were people in the hall?
    The rent is 900 a month including heating; electricity is paid separately. | Is heating included in the rent?; Must the tenant pay for electricity separately?; Is the rent 900 a month? | Is electricity included in the rent?; Is heating paid separately?; Is the rent 800?
    She studied chemistry in Porto, taught in Dakar for six years and now runs a theatre. | Did she study chemistry?; Does she run a theatre now?; Did she teach in Dakar? | Does she still teach?; Did she study in Dakar?; Did she study law?
    Our office moved from the third floor to the ground floor last week. | Is the office on the ground floor now?; Did the office move?; Was the office on the third floor? | Is the office on the third floor now?; Did the office move up?; Did the office move last year?
    The vaccine is given in two doses, four weeks apart, and is not suitable for children under two. | Are two doses needed?; Are the doses four weeks apart?; Is it unsuitable for a baby of one year? | Is one dose enough?; Can a child of one year get the vaccine?; Are the doses two weeks apart?
    Team Blue scored first, but Team Red won three to one. | Did Team Red win?; Did Team Blue score first?; Did Team Blue score one goal? | Did Team Blue win?; Did the match end in a draw?; Did Team Red score first?
    The red bus goes to the airport and the green bus goes to the harbour. Neither runs at night. | Does the red bus go to the airport?; Does the green bus go to the harbour?; Is there no bus at night? | Does the green bus go to the airport?; Does the red bus run at night?; Does the red bus go to the harbour?
    The parcel weighs 3 kilos and was sent on Tuesday from Ghent to Turin. | Was the parcel sent to Turin?; Was it sent on Tuesday?; Did the parcel come from Ghent? | Was the parcel sent from Turin?; Does the parcel weigh 5 kilos?; Was it sent on Thursday?
    Paul wanted to buy the boat, but his wife preferred a caravan, and in the end they bought neither. | Did the wife prefer a caravan?; Did Paul want a boat?; Did they buy nothing in the end? | Did they buy the boat?; Did they buy a caravan?; Did the wife want the boat?
    The lake froze for the first time since 1987, and skaters came from all over the country. | Did the lake freeze?; Did skaters come?; Did the lake freeze in 1987? | Does the lake freeze every year?; Did nobody come?; Did the lake stay free of ice?
    The recipe serves four. For eight people, double everything except the salt. | Does the recipe serve four?; Should one keep the amount of salt for eight people?; Should one double the flour for eight people? | Should one double the salt for eight people?; Does the recipe serve six?; Does it serve only two?
    The warranty covers the motor for five years and all other parts for one. | Is the motor covered for five years?; Is a wheel covered in the first year?; Is there a warranty? | Is a wheel covered for five years?; Does the warranty cover the motor for only one year?; Are all parts covered for five years?
    Before the fire, the school had 300 pupils; now there are 180. | Did the number of pupils fall?; Was there a fire?; Does the school have 180 pupils now? | Does the school have more pupils than before?; Does the school have 300 pupils now?; Did the number of pupils double?
    The hotel accepts dogs up to ten kilos for a fee of 15 a night. Cats stay free. | Do cats stay free?; Is there a fee for dogs?; Is a dog of eight kilos accepted? | Do dogs stay free?; Is a dog of thirty kilos accepted?; Do cats cost 15 a night?
    Dr. Silva works mornings on Monday and Wednesday and afternoons on Friday. | Does Dr. Silva work on Wednesday morning?; Does she work on Friday afternoon?; Is Monday a working day? | Does Dr. Silva work on Friday morning?; Does she work on Tuesday?; Does she work on Monday afternoon?
    The first edition sold out in a week, so the publisher is printing 20,000 more copies. | Did the first edition sell out?; Will more copies be printed?; Was the book in demand? | Did the book sell badly?; Are copies of the first edition left?; Did it take a year to sell out?
    The path is steep and unsuitable for prams, but there is a lift on the north side. | Is there a lift?; Is the path steep?; Is the lift on the north side? | Is the path good for prams?; Is the lift on the south side?; Is the path flat?
    Amir borrowed the ladder from Jo and gave it back a day later with a bottle of wine. | Did Amir borrow a ladder?; Did Amir return the ladder?; Did Jo own the ladder? | Did Jo borrow the ladder from Amir?; Did Amir keep the ladder?; Did Amir lend Jo a ladder?
    The factory makes 500 bottles an hour by day and none at night. | Does the factory make bottles by day?; Does production stop at night?; Does it make 500 bottles an hour by day? | Does the factory make bottles at night?; Does it make 50 bottles an hour?; Does it work around the clock?
    Tickets cost 12 at the door and 9 online; students pay 7 in both cases. | Are tickets cheaper online?; Do students pay 7?; Does a ticket at the door cost 12? | Do students pay 9 online?; Are tickets cheaper at the door?; Is entry free for students?
    The committee has not decided yet; it meets again on 14 March. | Is the decision still open?; Will the committee meet again?; Is there a meeting on 14 March? | Has the committee decided?; Does it meet again in May?; Was 14 March the last meeting?
    Everyone in the family plays an instrument except Karl, who paints. | Does Karl paint?; Do the others play an instrument?; Does Karl play no instrument? | Does Karl play an instrument?; Does nobody play an instrument?; Does the whole family paint?
    The old mill burned down in 1911 and was rebuilt in stone three years later. | Was the mill rebuilt?; Was the new mill made of stone?; Did the mill burn down? | Did the mill survive the fire?; Was the mill rebuilt in wood?; Was it rebuilt before 1911?
    The store gives refunds within 30 days with a receipt, and exchanges without one. | Does one need a receipt for a refund?; Can goods be exchanged without a receipt?; Are refunds given within 30 days? | Can one get a refund without a receipt?; Are refunds given after 60 days?; Are exchanges impossible?
""")]

# Each: query | a document that answers | one that shares its subject and does not answer.
QUERIES = [[part.strip() for part in line.split("|")] for line in lines("""
    how to remove red wine from a carpet | Blot the stain, cover it with salt and soda water, and vacuum after an hour; wine comes out even after a day. | The region is known for its red wines, which age in oak for two years.
    best time to plant tulips | Tulip bulbs go into the ground from October until the first hard frost. | Tulips were traded at absurd prices in the Netherlands in the 1630s.
    why is my bread not rising | Dough that stays flat usually has old yeast or too cold a room. | A loaf of white bread has about 250 calories per 100 grams.
    opening hours of the city library | The library on Mill Street is open from ten to seven, on Saturdays until four. | The city library was founded by a shoemaker with a passion for maps.
    symptoms of dehydration | Dry mouth, dark urine and dizziness are signs that the body lacks water. | Bottled water is sold in more shapes and sizes than ever.
    how to change a bicycle tube | Let the air out, lever the tyre off the rim, swap the tube and pump it up. | Bicycle sales rose by a third during the fuel crisis.
    who painted the ceiling of the chapel | The ceiling was painted by a local artist named Berto between 1611 and 1614. | The chapel can be hired for weddings from May to September.
    train from Basel to Milan duration | The direct train from Basel reaches Milan in about four hours. | Milan's cathedral took almost six centuries to build.
    can dogs eat grapes | Grapes and raisins can damage a dog's kidneys, so keep them out of reach. | Grapes are picked by hand on the steep slopes above the river.
    reset a forgotten wifi password | Hold the router's reset button for ten seconds and set a new wireless password in its menu. | Wifi is available in all carriages of the express train.
    cheap places to eat near the station | Behind the station, the noodle bar and the falafel stand both serve lunch for under six. | The station was rebuilt in glass and steel after the war.
    how do vaccines work | A vaccine shows the immune system a harmless piece of a germ, so that it recognises the real one later. | The vaccine was shipped in boxes of dry ice.
    average salary of a nurse | Nurses earn about 38,000 a year on average, more on night shifts. | Nurses wore white caps until the seventies.
    fix a dripping tap | Turn off the water, unscrew the handle and replace the rubber washer. | Tap water in the region comes from a mountain spring.
    is it safe to swim in the lake | The water was tested in June and found clean; bathing is allowed at all beaches of the lake. | The lake is 62 metres deep and home to pike.
    what causes thunder | Lightning heats the air so fast that it expands with a bang: that is thunder. | Thunder was the name of the farmer's favourite horse.
    knitting patterns for beginners | A simple scarf in garter stitch is the ideal first pattern; here are the steps. | The knitting mill closed in 1982 and is now a museum.
    return policy for shoes | Unworn shoes can be sent back within 60 days, free of charge. | The shoes are made of recycled bottles.
    how long do eggs keep in the fridge | Raw eggs stay good for about four weeks in the refrigerator. | Put the fridge at least five centimetres from the wall.
    visa requirements for Vietnam | Travellers to Vietnam can apply online for a visa valid 90 days; a passport photo is needed. | Vietnam grows more coffee than any other country in Asia.
    how to train for a marathon | Run four times a week, add a kilometre to the long run each weekend and rest before the race. | The marathon will close the ring road on Sunday.
    side effects of aspirin | Aspirin may cause stomach pain and bleeding. | Aspirin was first sold by a dye maker.
    make cold brew coffee | Steep coarse coffee in cold water for sixteen hours and strain it. | Coffee prices rose after the frost in Brazil.
    history of the umbrella | Umbrellas began as parasols in ancient Egypt and China and met rain only much later. | This umbrella folds to the size of a phone.
    when does the pharmacy close | The pharmacy shuts at 8 pm, on Sundays at noon. | The pharmacy gave each child a balloon.
    how to get rid of ants | Wipe their trail with vinegar and put bait where the ants come in. | Ants can carry fifty times their own weight.
    why do leaves turn red | In autumn the green pigment breaks down and red pigments show. | Leaves clogged the gutter and the cellar flooded.
    noise rules in the apartment house | Tenants must keep quiet from 10 pm to 6 am and at noon on Sundays. | The apartment house has a roof garden and two lifts.
    learn to play the ukulele | Start with the chords C, F and G; most ukulele songs need no more. | The ukulele on display belonged to a famous actor.
    cost of renewing a passport | A new passport costs 70 and takes three weeks. | Keep your passport in the hotel safe.
    what does a mill wheel do | The wheel turns with the stream and drives the stones that grind the grain. | The wheel of the bus lost its cap.
    how to write a cover letter | Keep the letter to one page, say why you want the job and give one example of your work. | The letter was found behind the cover of an old book.
    treat a bee sting | Scrape the sting out at once, wash and cool the skin. | Bees visit two million flowers for a jar of honey.
    which planets have rings | Saturn, Jupiter, Uranus and Neptune all have rings. | Wedding rings are cheaper in silver.
    pet insurance for old cats | Some insurers accept cats up to fifteen years, at a higher premium. | Old cats like warm places and soft food.
    how deep is the ocean | The ocean is 3,700 metres deep on average and almost eleven kilometres at its deepest. | The ocean liner had three swimming pools.
""")]

# What a user may say to the model; the base model's own answers keep its chat as it was.
CHAT = lines("""
    Hello!
    Good morning, how are you?
    What is your name?
    What can you help me with?
    Tell me a joke.
    What is the capital of France?
    Name three fruits.
    Write one sentence about the sea.
    What is 5 plus 7?
    Give me a tip for better sleep.
    Who wrote Hamlet?
    Describe a sunset in one sentence.
    What do bees make?
    Suggest a name for a cat.
    How do I boil an egg?
    What is gravity?
    Name a large city in Japan.
    Write a short greeting for a birthday card.
    Why is the sky blue?
    What is photosynthesis?
    Give me a synonym for happy.
    Translate "good night" to Spanish.
    What is a computer?
    How many days are in a week?
    Write a haiku about snow.
    What should I cook tonight?
    What is the opposite of hot?
    Name two planets.
    Can you help me write an email?
    What is a good hobby?
    How do I learn to swim?
    Who was Albert Einstein?
    What is the largest ocean?
    Tell me a fact about elephants.
    Write a slogan for a bakery.
    How do plants drink water?
    Give me a reason to read books.
    What is Python used for?
    Explain rain to a child.
    What time of year do leaves fall?
    Finish the sentence: The old man walked to
    Write a two line poem about a dog.
    Thank you for your help!
    Goodbye!
    What is the boiling point of water?
    Name a musical instrument with strings.
    How do I make tea?
    What is democracy?
    Recommend a place to visit in Italy.
    What does a doctor do?
    Write a title for a story about a dragon.
    How can I save money?
    What is the speed of light?
    Name a vegetable that is green.
    Give me advice for a job interview.
    What is a black hole?
    How old is the Earth?
    What is the sun made of?
    Make a list of three colors.
    Who discovered penicillin?
    Write a sentence with the word river.
    What is the square root of 81?
    How do birds fly?
    What is a verb?
    Tell me about Mars.
    What is the currency of Japan?
    How do I tie a tie?
    Give me a healthy breakfast idea.
    What is the fastest animal?
    Explain what a friend is.
    Write a short apology to a teacher.
    What is electricity?
    How do I clean a window?
    Name a famous painter.
    What is snow?
    How can I be more patient?
    Why do cats purr?
    What is a balanced diet?
    Give me a question for a quiz.
    Write a one sentence weather report.""")
