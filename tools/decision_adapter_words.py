"""Own sentences for tools/train_decision_adapter.py, beside those of default_model_words.py.

A labelled set maps a label to (other names for it, a description, its sentences). A hash of the
sentence decides whether it is for training or for validation.
"""
from default_model_words import lines, words

EMOTIONS = {
    "joy": (words("happiness, delight, happy"), "the writer is glad", lines("""
        I got the place at the music school, I danced all the way home!
        Our daughter said her first word today and we cannot stop smiling.
        The whole street came to my party, best evening in years.
        Finally passed my driving test, I'm over the moon.
        We are having a baby!
        Sun on my face, coffee in my hand, nothing to do. Bliss.
        My brother is home after two years abroad and the house is full of laughter.
        They picked my drawing for the cover, I'm grinning from ear to ear.
        The tumour is gone. We laughed and cried and hugged everybody.
        I love my new job, I sing on the way there.
        What a lovely surprise visit, my heart is full.
        We won the quiz night and celebrated until two.
        It was the happiest day of my life.
        The garden is in bloom and so am I.""")),
    "anger": (words("rage, fury, angry"), "the writer is furious", lines("""
        He read my diary and then joked about it in front of everyone. How dare he.
        Third time this week that someone parked across my drive. I've had enough!
        They lied to my face and kept the deposit. I could scream.
        Stop talking over me in every single meeting!
        Whoever keyed my car is going to pay for it.
        My boss took the credit for my work again, I am boiling.
        Two hours on hold and then they hung up on me. Outrageous.
        I slammed the door so hard that the frame cracked.
        She promised to keep it secret and told the whole office. I'm livid.
        It makes my blood boil when people throw rubbish out of the window.
        You broke it, you hid it and you blamed my kid. Unbelievable nerve.
        I'm sick of being treated like a fool by this company.
        The neighbours drilled all night and shouted at me when I complained.
        Don't you ever speak to my mother like that again.""")),
    "sadness": (words("sorrow, grief, sad"), "the writer is sad", lines("""
        I still set two plates on the table, and then I remember.
        Our old dog died in my arms this morning.
        Nobody called on my birthday.
        He packed his bag, closed the door, and the flat has been silent since.
        I cried in the car before going in.
        We sold grandma's house today. I kept the key.
        Another letter of rejection. Maybe I am just not good enough.
        I miss her more with every winter.
        The children have left and the rooms feel so empty.
        She moved away and we both know that we will lose touch.
        Everything feels grey and heavy lately.
        I looked at the old photos and could not hold back the tears.
        My best friend did not come to say goodbye.
        It hurts to walk past the place where we met.""")),
    "fear": (words("anxiety, worry, afraid"), "the writer is afraid", lines("""
        Someone is walking behind me and has been since the station.
        The results come tomorrow and I have not slept for two nights.
        There was a noise downstairs. I am hiding in the bathroom.
        What if the rope does not hold?
        My hands shake whenever the phone rings from the hospital.
        The plane dropped and I thought that this was the end.
        I dread going back to school on Monday, they said they would wait for me.
        The water keeps rising and we are still on the ground floor.
        Please stay on the line, I don't dare to open the door.
        I'm terrified of losing my job before the baby comes.
        The doctor went quiet when she looked at the screen, and my heart stopped.
        I checked the locks three times and still lie awake.
        Spiders. In the bed. I can't go in there.
        I am so nervous about the operation that I feel sick.""")),
    "surprise": (words("astonishment, amazement, surprised"), "the writer did not expect it", lines("""
        Wait, you two are sisters? I had no idea!
        I opened the wall and found a second kitchen behind it.
        Of all people, my shy cousin is now a stand-up comedian.
        It snowed in June. I had to look twice.
        The quiet man next door turned out to have written my favourite book.
        I expected a bill and found a cheque instead. What?
        Nobody told me that there would be a llama in the lobby.
        He is eighty? I would have said sixty at most!
        Well, I did not see that ending coming.
        I turned around and there stood my whole class from thirty years ago.
        The box I bought for a pound holds a gold coin. I can't believe my eyes.
        Whoa, since when can you play the harp?
        Never in my life would I have guessed that it was you.
        The cat walked in with a sausage. We do not own sausages.""")),
    "disgust": (words("revulsion, repulsion, disgusted"), "the writer is disgusted", lines("""
        There was a hair in the soup, and then I saw what was under it.
        The fridge had been off for a month. I gagged when I opened it.
        He clipped his toenails on the train, next to my sandwich.
        The towels in the hotel were damp and smelled of feet.
        Maggots in the bin again, I nearly threw up.
        I bit into the apple and saw half a worm.
        The toilet at the station was beyond filthy, I had to leave.
        She licked the spoon and put it back into the pot. Yuck.
        The mould on the wall was furry and wet.
        That smell of rotten fish turned my stomach.""")),
    "love": (words("affection, tenderness, loving"), "the writer feels love", lines("""
        I watch you sleep and cannot believe that you chose me.
        Forty years married and I would say yes again today.
        Come here, little one, let me hold you a moment longer.
        You are my home, wherever we live.
        I kissed his forehead and tucked him in.
        My darling, every day with you is a gift.
        She is the kindest soul I know and I adore her.
        Thinking of you, counting the hours till I can hug you.
        Dear grandpa, I love you to the moon and back.
        He makes me tea every morning without asking, and I love him for it.""")),
}

LANGUAGES = {
    "English": (["english"], "", lines("""
        The shop on the corner closes at six.
        Could you tell me where the nearest bank is?
        My sister has lived by the sea for ten years.
        We had to wait because the bridge was up.
        I never said that I could swim.
        Put the keys on the table when you leave.
        Autumn is the best season for long walks.
        They have been building that school since spring.
        Would you like another cup of tea?
        The children ran outside as soon as it stopped raining."""
    )),
    "German": (["german", "Deutsch"], "", lines("""
        Der Laden an der Ecke macht um sechs zu.
        Kannst du mir sagen, wo der Bahnhof ist?
        Meine Schwester wohnt seit zehn Jahren am Meer.
        Wir mussten lange auf den Bus warten.
        Das habe ich nie gesagt.
        Leg bitte die Schlüssel auf den Tisch.
        Im Herbst gehen wir gern im Wald spazieren.
        Morgen kommt der Handwerker und repariert die Heizung.
        Möchten Sie noch eine Tasse Tee?
        Die Kinder liefen hinaus, sobald es nicht mehr regnete.
        Ich hätte gern zwei Brötchen und einen Kaffee.""")),
    "French": (["french", "Français"], "", lines("""
        Le magasin du coin ferme à six heures.
        Pouvez-vous me dire où se trouve la gare ?
        Ma soeur habite au bord de la mer depuis dix ans.
        Nous avons dû attendre le bus longtemps.
        Je n'ai jamais dit cela.
        Pose les clés sur la table, s'il te plaît.
        En automne, nous aimons marcher dans la forêt.
        Demain, le plombier viendra réparer le chauffage.
        Voulez-vous encore une tasse de thé ?
        Les enfants sont sortis dès que la pluie s'est arrêtée.
        Je voudrais deux croissants et un café.""")),
    "Spanish": (["spanish", "Español"], "", lines("""
        La tienda de la esquina cierra a las seis.
        ¿Me puede decir dónde está la estación?
        Mi hermana vive junto al mar desde hace diez años.
        Tuvimos que esperar el autobús mucho tiempo.
        Yo nunca dije eso.
        Deja las llaves sobre la mesa, por favor.
        En otoño nos gusta caminar por el bosque.
        Mañana viene el fontanero a arreglar la calefacción.
        ¿Quiere usted otra taza de té?
        Los niños salieron en cuanto dejó de llover.
        Quisiera dos panecillos y un café con leche.""")),
    "Italian": (["italian", "Italiano"], "", lines("""
        Il negozio all'angolo chiude alle sei.
        Mi può dire dov'è la stazione?
        Mia sorella vive al mare da dieci anni.
        Abbiamo dovuto aspettare a lungo l'autobus.
        Non l'ho mai detto.
        Metti le chiavi sul tavolo, per favore.
        In autunno ci piace camminare nel bosco.
        Domani viene l'idraulico a riparare il riscaldamento.
        Vuole un'altra tazza di tè?
        I bambini sono usciti appena ha smesso di piovere.
        Vorrei due panini e un caffè.""")),
    "Portuguese": (["portuguese", "Português"], "", lines("""
        A loja da esquina fecha às seis.
        Pode dizer-me onde fica a estação?
        A minha irmã mora perto do mar há dez anos.
        Tivemos de esperar muito tempo pelo ônibus.
        Eu nunca disse isso.
        Deixa as chaves em cima da mesa, por favor.
        No outono gostamos de caminhar na floresta.
        Amanhã vem o canalizador para consertar o aquecimento.
        Você quer mais uma xícara de chá?
        As crianças saíram assim que parou de chover.
        Queria dois pãezinhos e um café.""")),
    "Dutch": (["dutch", "Nederlands"], "", lines("""
        De winkel op de hoek sluit om zes uur.
        Kunt u mij zeggen waar het station is?
        Mijn zus woont al tien jaar aan zee.
        We moesten lang op de bus wachten.
        Dat heb ik nooit gezegd.
        Leg de sleutels maar op tafel.
        In de herfst wandelen we graag in het bos.
        Wilt u nog een kopje thee?
        De kinderen gingen naar buiten zodra het droog was.""")),
    "Swedish": (["swedish"], "", lines("""
        Affären på hörnet stänger klockan sex.
        Kan du säga mig var stationen ligger?
        Min syster har bott vid havet i tio år.
        Vi fick vänta länge på bussen.
        Det har jag aldrig sagt.
        Lägg nycklarna på bordet, är du snäll.
        På hösten går vi gärna i skogen.
        Vill du ha en kopp te till?""")),
    "Polish": (["polish"], "", lines("""
        Sklep na rogu zamykają o szóstej.
        Czy może mi pan powiedzieć, gdzie jest dworzec?
        Moja siostra mieszka nad morzem od dziesięciu lat.
        Musieliśmy długo czekać na autobus.
        Nigdy tego nie powiedziałem.
        Połóż klucze na stole.
        Jesienią lubimy spacerować po lesie.""")),
}

TOPICS = {
    "sports": (words("sport, athletics"), "games, teams and athletes", lines("""
        The keeper saved two penalties and sent the home side through to the semi-final.
        After a five-hour battle on clay, the teenager knocked out the champion.
        The sprinter withdrew from the relay with a torn hamstring.
        They traded their point guard an hour before the deadline.
        A late try gave the visitors their first win in eleven matches.
        The cyclist attacked on the last climb and took the yellow jersey.
        Fans queued all night for tickets to the derby.
        The coach was sacked after four defeats in a row.
        She set a new national record in the 400 metres freestyle.
        The club confirmed the signing of the striker on a three-year deal.""")),
    "business": (words("economy, finance"), "companies, markets and money", lines("""
        The retailer will close forty branches and cut its dividend.
        Shares fell nine percent after the firm warned of weak demand.
        The central bank left rates where they were.
        Two rival brewers agreed to merge in a deal worth four billion.
        Orders at the plant have doubled and a third shift starts in May.
        The startup raised twelve million from investors in its second round.
        Unemployment dropped to its lowest level since the crisis.
        The carrier filed for bankruptcy and grounded its fleet.
        Profits at the furniture maker rose for the fifth quarter.
        The chief financial officer resigned over an accounting error.""")),
    "politics": (words("government, political news"), "elections, laws and parties", lines("""
        The opposition called for a vote of no confidence.
        Lawmakers passed the housing bill by a margin of three.
        The minister denied that she had promised to resign.
        Polling stations opened at seven in all twelve provinces.
        The two presidents signed a border treaty.
        Her party lost its majority in the upper house.
        The mayor wants to ban cars from the old town by referendum.
        Senators questioned the nominee for nine hours.
        The coalition collapsed in a dispute about pensions.
        The ambassador was called home in protest.""")),
    "entertainment": (words("film and music, show business, culture"), "films, music, shows and stars",
        lines("""
        The sequel topped the box office for the third weekend.
        The singer announced a farewell tour of stadiums.
        The series was renewed for two more seasons.
        Critics adored the director's new comedy, audiences stayed home.
        The band's lost album will finally be released.
        She won the award for best actress and thanked her cat.
        The finale of the talent show drew twelve million viewers.
        A musical about the moon landing opens on stage in June.
        The actor will play the detective one last time.
        Rehearsals for the festival have begun and the headliner is still secret.""")),
    "technology": (words("tech, computers, IT"), "computers, software and devices", lines("""
        The update fixes a flaw that let attackers read messages.
        The new phone folds twice and charges in fifteen minutes.
        The lab trained a language model on a single graphics card.
        A bug in the login library took thousands of sites offline.
        The browser will block tracking cookies by default.
        Engineers showed a chip that computes with light.
        The headset follows the eyes and needs no controller.
        The company open-sourced its database engine.
        Robots in the warehouse now plan their own routes.
        The laptop's battery can be replaced without tools.""")),
    "health": (words("medicine, medical news"), "illness, doctors and care", lines("""
        Walking half an hour a day lowers blood pressure, doctors found.
        The clinic has run out of flu shots.
        A new pill halves the number of migraine attacks.
        Surgeons reattached the boy's hand in a nine-hour operation.
        Measles cases have tripled since spring.
        Too little sleep raises the risk of diabetes, a study says.
        The hospital opened a ward for premature babies.
        Nurses explain how to treat a burn at home.
        The trial of the cancer vaccine enters its last phase.
        Patients with asthma should stay indoors this week.""")),
    "science": (words("research"), "research and discoveries", lines("""
        The probe sent back the first pictures of the comet's far side.
        Biologists described a frog that glows under moonlight.
        The detector recorded a particle that theory had not foreseen.
        Ice cores tell of a warm century two thousand years ago.
        Chemists built a molecule in the shape of a knot.
        The fossil shows that the animal had feathers.
        Astronomers counted eleven new moons.
        Bees can tell odd numbers from even ones, an experiment suggests.""")),
    "travel": (words("tourism, holidays"), "trips and places to visit", lines("""
        The night train to the coast runs again from April.
        Pack light: the island has no roads and you walk from the pier.
        The hostel by the canal has the best breakfast in town.
        Visitors now need to book the temple a week ahead.
        Take the cable car at dawn, before the tour groups come.
        Three days are enough for the old harbour and the museums.
        The visa takes ten days and two photos.
        Our guide showed us caves that no map mentions.""")),
    "food": (words("cooking, recipes"), "dishes, recipes and restaurants", lines("""
        Fold the egg whites into the batter and bake until golden.
        The bistro serves a pumpkin ravioli that I still dream about.
        Let the dough rest overnight in a cool place.
        Toast the cumin first, then add onions and lentils.
        A pinch of salt brings out the chocolate.
        The cheese ripens for two years in the cellar.
        Simmer the bones for six hours to get a clear broth.
        Her new cookbook is all about leftovers.""")),
    "weather": (words("the forecast, climate"), "rain, wind and temperature", lines("""
        Fog in the valleys will lift by noon, with sunshine later.
        The storm tore roofs off and left the coast without power.
        Expect frost tonight and icy roads in the morning.
        No rain for six weeks: the reservoirs are half empty.
        Temperatures climb to 34 degrees on Thursday.
        Snow is falling down to 400 metres.
        A warm front brings drizzle from the west.
        Gusts of up to 110 kilometres an hour are forecast.""")),
    "education": (words("school, teaching"), "schools, students and learning", lines("""
        Pupils will learn a second language from third grade.
        The university waives fees for nursing students.
        Teachers say that the new exam leaves no time for reading.
        The village school has eleven children and one classroom.
        Homework helps little before the age of ten, researchers claim.
        She tutors maths after lessons in the library.
        The degree takes three years, with a term abroad.
        Parents may now choose the kindergarten freely.""")),
    "environment": (words("nature, ecology"), "nature and its protection", lines("""
        Volunteers pulled two tonnes of plastic from the river.
        Wolves have returned to the forest after a century.
        The reef lost half of its corals in ten years.
        The town plants a tree for every newborn.
        Beavers built a dam and stopped the flood.
        The factory must filter its waste water from July.
        Fewer insects stick to windscreens than thirty years ago.
        Farmers leave strips of wild flowers for bees.""")),
    "crime": (words("police news, law and order"), "crimes, police and courts", lines("""
        Thieves emptied the jeweller's safe through a tunnel.
        The jury found the nurse not guilty.
        Police arrested a man who had sold forged tickets.
        The witness recognised the driver in court.
        A gang stole bicycles in three towns.
        The judge sent the fraudster to prison for six years.
        Officers found the stolen painting under a bed.
        Someone broke into the pharmacy last night.""")),
}

INTENTS = {
    "billing": (words("payments, invoice question"), "invoices, charges and payment", lines("""
        There are two identical charges on my card from the 3rd.
        My invoice says 59 but the website said 49.
        Can I pay by bank transfer instead of card?
        The discount code was accepted, yet I paid the full price.
        What is this 4.99 service fee on my statement?
        Please put our tax number on the invoice.
        My payment bounced although there is money in the account.
        You billed me for three seats and we are only two people.
        Why did the price go up this month?
        I need last year's receipts for my accountant.""")),
    "technical": (words("technical problem, bug report, something broken"), "errors, crashes and faults",
        lines("""
        Since Tuesday the page stays white after I press save.
        The app closes by itself whenever I rotate the phone.
        Error 503 each time I upload a picture.
        The sound stops after ten minutes of a call.
        Export gives me an empty file.
        Notifications arrive three hours late.
        The printer shows offline although it is connected.
        Search returns nothing, even for words that are there.
        After the update my calendar shows everything twice.
        The video stutters on a fast line.""")),
    "delivery": (words("shipping, where is my order"), "parcels and shipping", lines("""
        The tracking page has said out for delivery for four days.
        My parcel was left with a neighbour I do not know.
        Can you send it to my office instead?
        Only one of the two boxes came.
        It says delivered, but there is nothing here.
        How long does shipping to Norway take?
        The courier rang, I ran down, he was gone.
        I'd like to pick it up at the depot myself.
        The lamp arrived in pieces.
        Will my order be here before the weekend?""")),
    "account access": (words("login problem, account"), "login, password and locked accounts", lines("""
        It says my password is wrong, but I have just changed it.
        The code by text message never reaches me.
        I lost my phone and with it the authenticator.
        My account has been locked since this morning.
        The reset link has expired, again.
        I no longer have the email address I signed up with.
        Someone from another country got into my profile.
        How do I sign in on a second device?
        The site does not recognise my user name.
        It keeps logging me out after each click.""")),
    "cancel": (words("cancellation, end the contract"), "ending a subscription or an order", lines("""
        I want to end my subscription at the end of the month.
        Please stop the renewal, I don't use it any more.
        I ordered by mistake, please call it off.
        How do I get out of the yearly plan?
        Close my contract, I am moving abroad.
        Don't send the next box, I am done with it.
        I'd like to terminate my membership.
        Where is the button to quit the plan?
        Take me off the programme from June.
        Please confirm that my subscription stops today.""")),
    "refund": (words("money back, return"), "getting money back", lines("""
        The shoes are too small, I'd like my money back.
        I sent the coat back two weeks ago and still have not been repaid.
        The concert was called off, how do I get my money?
        I was promised a refund by phone and nothing came.
        Can I return an opened box?
        Please reimburse me for the broken vase.
        Where do I print a return label?
        I'd rather have the money than a voucher.""")),
    "change booking": (words("reschedule, change of date"), "moving an appointment or a booking", lines("""
        Can we move the appointment from Monday to Thursday?
        I need to change the name on the ticket.
        We will arrive a day later than booked.
        Please add a second guest to our room.
        Is a later train possible with the same ticket?
        I'd like a table at eight instead of seven.
        Could the plumber come in the morning rather than at four?
        We are five now, not four.""")),
    "product question": (words("question about a product, information"), "features, sizes and stock",
        lines("""
        Does the tent fit three adults?
        Is the blue one coming back in stock?
        What is the difference between the basic and the pro model?
        Can the pan go in the oven?
        Which size should I take if I am between M and L?
        Does it work without an internet connection?
        How heavy is the folding bike?
        Is there milk in the chocolate?""")),
    "complaint": (words("unhappy customer"), "anger about staff or service", lines("""
        Your driver shouted at my mother. I expect an apology.
        I have written five times and nobody has answered.
        The waiter laughed at us when we asked for water.
        This is the worst support I have ever dealt with.
        I was promised a call back on Friday. It is Wednesday.
        The fitter left mud on every carpet.
        Your colleague hung up on me.
        The room was dirty and the desk did not care.""")),
    "praise": (words("compliment, thanks"), "thanks and kind words", lines("""
        Just wanted to say thank you to the lady at the desk.
        Great job by your team, the kitchen looks superb.
        Your driver found my wallet and brought it back, bless him.
        The manual is a joy to read, well done.
        Everything arrived early and in perfect shape, thanks!
        Kudos to Rita, who stayed late to help me.
        I'm a happy customer and will tell my friends.
        Thanks for the quick fix yesterday.""")),
    "job application": (words("application, careers"), "asking for work", lines("""
        Are you looking for a night porter?
        Attached is my CV for the position of cook.
        I'd like to do an internship with you in summer.
        Is the vacancy in the warehouse still open?
        When will applicants hear from you?
        I am a trained welder and would love to join your team.""")),
}

SPAM = {
    True: lines("""
        Your parcel is held at customs. Pay 1.99 now via this link or it goes back.
        WINNER!! Your number was drawn. Call 0900 today to collect 5,000 in cash.
        Dear customer, your mailbox is full, confirm your password here to keep it.
        Grow your followers overnight, only 9 dollars for 10k likes.
        I am a widow with 8 million to give away and need your account number.
        Doctors hate this trick: lose 12 kilos in 12 days.
        Last chance! Replica watches, 85 % off, free shipping.
        Your bank card is blocked. Log in at secure-bank-check.example to unlock it.
        Hot singles in your area want to chat tonight.
        Earn 400 a day from your sofa, no skills needed, spots are filling fast.
        Mum, I broke my phone, this is my new number, can you send 900 quickly?
        Your computer has 5 viruses, call our certified support now.
        Crypto robot doubles your money in a week, guaranteed. Sign up free.
        Congratulations, you are visitor 1,000,000. Claim your tablet.
        Cheap meds without prescription, discreet delivery worldwide.
        You have an unpaid fine. Settle it within 24 hours by gift card.
        Re: your loan is approved! No credit check, just reply YES.
        Final reminder: renew your domain through us or lose it today.
        Free casino spins waiting for you, no deposit needed, tap here.
        The tax office owes you 612.40. Enter your card details for the refund.
        You've been chosen for a secret shopper job, send us your ID and 50 for the starter kit.
        Unlock the miracle cream that celebrities use, trial ends at midnight.
        We have recorded you through your camera. Pay in bitcoin or we share it.
        Investment opportunity!!! 300 % return, limited places, act now."""),
    False: lines("""
        Running ten minutes late, order me a coffee please.
        The minutes of Tuesday's meeting are in the shared folder.
        Your appointment with Dr. Malik is on 4 May at 9:15.
        Did you turn the oven off?
        Here is the invoice for the chairs, as agreed on the phone.
        Grandad is out of hospital and sends his love.
        Your library loans are due in three days.
        Can you cover my shift on Sunday? I'll take yours next week.
        The lift will be out of order from eight to noon.
        I have pushed the fix, could you review it before lunch?
        Happy anniversary to you both!
        Thanks for your order. We will write again when it has been sent.
        School closes at twelve tomorrow because of the heat.
        The landlord will read the meters on Friday morning.
        Shall we share a taxi to the airport?
        Please bring the signed form to the first lesson.
        I won't make it to training tonight, my knee is sore.
        Here are the photos from the hike, the third one is my favourite.
        Your password was changed on Monday as you asked. If it was not you, call the helpdesk.
        The book you reserved has arrived at our shop.
        Draft attached. I am not sure about the last paragraph, what do you think?
        The free concert in the park starts at six, want to come?
        Payday is moved to the 28th because of the holiday.
        We won! Two to one, and your nephew scored."""),
}
